/**
 * Workloads and their pods, from a seed, with the names that kube-controller-manager and kube-apiserver
 * generate:
 *
 * - The hash of a ReplicaSet is FNV-1a (32 bits) of the pod template, written as a decimal number, each
 *   digit of which is replaced by the character at `code % 27` of `bcdfghjklmnpqrstvwxz2456789`. Here the
 *   number is random, which is as evenly distributed.
 * - Pods of ReplicaSets, ReplicationControllers, DaemonSets and Jobs have a `generateName`: the owner's
 *   name and a dash, for an indexed Job also the index and a dash, for which the Job's name is cut. The
 *   API server cuts it to 58 characters and appends five random ones of the same alphabet.
 * - Pods of a StatefulSet end with their ordinal.
 * - Jobs of a CronJob end with the minutes since 1970 for which they were scheduled.
 * - Static pods end with the name of their node.
 */
import { Random } from './random.ts'

export interface Named {
  readonly kind: string
  readonly name: string
}

export interface MadePod {
  readonly namespace: string
  readonly name: string
  /** What a person calls its workload; the pod itself if it has none. */
  readonly workload: Named
  /** The controllers above it, the nearest first. */
  readonly owners: readonly Named[]
  readonly trap: Trap
}

/** Why a name is difficult: it ends like a generated one, is cut, or ends with the name of a node. */
export type Trap = '' | 'looks' | 'long' | 'static'

export interface MadeWorkloadsOptions {
  readonly seed: number
  readonly workloads: number
  readonly pods: number
}

/** Exactly `pods` pods. Names of workloads are unique in their namespace. */
export function madeWorkloads({ seed, workloads, pods }: MadeWorkloadsOptions): readonly MadePod[] {
  const maker = new Maker(new Random(seed))
  const planned = Array.from({ length: workloads }, (_, index) => maker.plan(index, workloads))
  // Daemons and Deployments grow until there are enough pods, as they do in a larger cluster.
  const made = planned.flatMap((plan) => maker.pods(plan, plan.least))
  const growing = planned.filter(({ grows }) => grows)
  for (let index = 0; made.length < pods; index++) {
    const plan = growing[index % growing.length]
    if (plan === undefined) throw new Error('no workload can have more pods')
    made.push(...maker.pods(plan, 1))
  }
  return made.slice(0, pods)
}

/** How the digits of a hash are written. */
export function safeEncoded(text: string): string {
  return [...text].map((character) => SAFE[character.charCodeAt(0) % SAFE.length]).join('')
}

/** What an API server makes of a `generateName`. */
export function generatedName(base: string, random: Random): string {
  const suffix = Array.from({ length: 5 }, () => SAFE[random.below(SAFE.length)]).join('')
  return base.slice(0, 58) + suffix
}

const SAFE = 'bcdfghjklmnpqrstvwxz2456789'
const NODES = 60
/** The middle of 2026. */
const MINUTE = 29_690_000

type Kind =
  | 'Deployment'
  | 'DaemonSet'
  | 'StatefulSet'
  | 'CronJob'
  | 'Job'
  | 'IndexedJob'
  | 'ReplicaSet'
  | 'ReplicationController'
  | 'StaticPod'
  | 'Pod'

/** Shares of the workloads, and how many pods each has at least and at most before they grow. */
const KINDS: readonly (readonly [Kind, number, number, number])[] = [
  ['Deployment', 0.52, 1, 20],
  ['DaemonSet', 0.06, 30, NODES],
  ['StatefulSet', 0.1, 1, 9],
  ['CronJob', 0.12, 2, 12],
  ['Job', 0.08, 1, 3],
  ['IndexedJob', 0.02, 2, 30],
  ['ReplicaSet', 0.01, 1, 4],
  ['ReplicationController', 0.01, 1, 4],
  ['StaticPod', 0.02, 3, 5],
  ['Pod', 0.06, 1, 1],
]

const NAMESPACES = ['shop', 'billing', 'search', 'platform', 'kube-system', 'batch', 'ml'] as const
const FIRST = ['web', 'cart', 'checkout', 'redis', 'mail', 'search', 'auth', 'node', 'log'] as const
const SECOND = ['api', 'worker', 'master', 'agent', 'proxy', 'db', 'dns', 'gateway', 'v2'] as const
/** Names that end as something that is generated. */
const ENDINGS = [
  '0',
  '3',
  '12',
  'bcdfg',
  'https',
  '7d9f8b6c5',
  '20240131',
  'x2k4q',
  '12345',
] as const
const LONG = 'the-service-that-does-everything-for-the-customers-of-the-shop'
/** The name of a CronJob has at most 52 characters. */
const LONG_MIN = 44
const LONG_MAX = 62
const STATIC = ['etcd', 'kube-apiserver', 'kube-scheduler', 'keepalived'] as const

interface Plan {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly trap: Trap
  readonly least: number
  readonly grows: boolean
  /** Pods so far. */
  made: number
  /** The ReplicaSet or Job that owns the next pods. */
  middle: string
}

class Maker {
  readonly #random: Random
  readonly #names = new Set<string>()

  constructor(random: Random) {
    this.#random = random
  }

  plan(index: number, count: number): Plan {
    const [kind, , fewest, most] = kindAt(index / count)
    const namespace = this.#random.pick(NAMESPACES)
    const trap = kind === 'StaticPod' ? 'static' : trapAt(index)
    const name = this.#name(kind, namespace, trap)
    const least = fewest + this.#random.below(most - fewest + 1)
    const grows = kind === 'Deployment' || kind === 'DaemonSet'
    return { kind, namespace, name, trap, least, grows, made: 0, middle: '' }
  }

  pods(plan: Plan, count: number): readonly MadePod[] {
    return Array.from({ length: count }, () => this.#newPod(plan))
  }

  /** Two pods of a namespace cannot have the same name. */
  #newPod(plan: Plan): MadePod {
    for (;;) {
      const pod = this.#pod(plan)
      const path = `${pod.namespace}/pods/${pod.name}`
      plan.made++
      if (this.#names.has(path)) continue
      this.#names.add(path)
      return pod
    }
  }

  #pod(plan: Plan): MadePod {
    const { kind, namespace, name, trap, made } = plan
    const random = this.#random
    const own = (...owners: readonly Named[]) => ({ workload: owners.at(-1) as Named, owners })
    switch (kind) {
      case 'Deployment': {
        // A tenth of the pods begin another rollout.
        if (made === 0 || random.chance(0.1)) plan.middle = `${name}-${this.#hash()}`
        const set = { kind: 'ReplicaSet', name: plan.middle }
        const pod = generatedName(`${plan.middle}-`, random)
        return { namespace, name: pod, ...own(set, { kind, name }), trap }
      }
      case 'CronJob': {
        if (made % 2 === 0) plan.middle = `${name}-${MINUTE + random.below(9_999)}`
        const job = { kind: 'Job', name: plan.middle }
        const pod = generatedName(`${plan.middle}-`, random)
        return { namespace, name: pod, ...own(job, { kind, name }), trap }
      }
      case 'StatefulSet':
        return { namespace, name: `${name}-${made}`, ...own({ kind, name }), trap }
      case 'IndexedJob': {
        const index = `-${made}-`
        const pod = generatedName(name.slice(0, 58 - index.length) + index, random)
        return { namespace, name: pod, ...own({ kind: 'Job', name }), trap }
      }
      case 'StaticPod':
      case 'Pod': {
        const pod = kind === 'Pod' ? name : `${name}-node-${made + 1}`
        return { namespace, name: pod, workload: { kind: 'Pod', name: pod }, owners: [], trap }
      }
      case 'DaemonSet':
      case 'Job':
      case 'ReplicaSet':
      case 'ReplicationController':
        return { namespace, name: generatedName(`${name}-`, random), ...own({ kind, name }), trap }
    }
  }

  #hash(): string {
    return safeEncoded(String(this.#random.below(2 ** 32)))
  }

  #name(kind: Kind, namespace: string, trap: Trap): string {
    for (;;) {
      const name = this.#anyName(kind, trap)
      const path = `${namespace}/${name}`
      const pod = `${namespace}/pods/${name}`
      if (this.#names.has(path) || (kind === 'Pod' && this.#names.has(pod))) continue
      this.#names.add(path)
      return name
    }
  }

  #anyName(kind: Kind, trap: Trap): string {
    const random = this.#random
    const words = [random.pick(FIRST), random.pick(SECOND), random.pick(FIRST)]
    if (trap === 'static') return `${random.pick(STATIC)}${random.pick(['', '-blue', '-green'])}`
    if (trap === 'looks') return `${words.join('-')}-${random.pick(ENDINGS)}`
    if (trap === 'long') {
      const length = LONG_MIN + random.below((kind === 'CronJob' ? 52 : LONG_MAX) - LONG_MIN)
      return `${random.pick(FIRST)}-${LONG}`.slice(0, length).replace(/-$/, 'x')
    }
    return words.slice(0, 1 + random.below(3)).join('-')
  }
}

/** One workload of 20 has a name that looks generated, one of 33 a long one. */
function trapAt(index: number): Trap {
  if (index % 20 === 7) return 'looks'
  return index % 33 === 11 ? 'long' : ''
}

function kindAt(share: number): (typeof KINDS)[number] {
  let end = 0
  for (const row of KINDS) {
    end += row[1]
    if (share < end - 1e-9) return row
  }
  return KINDS.at(-1) as (typeof KINDS)[number]
}
