/**
 * Events as a busy cluster writes them, from a seed: short stories about pods, nodes, deployments and
 * jobs. About four of five have the old style of core/v1, with deprecated times and counts; the
 * others the new style, some with a series.
 */
import { Random } from './random.ts'
import { type Happening, newStyle, oldStyle, type Subject } from './recorder-styles.ts'
import type { WireEvent } from './wire-event.ts'

export interface RealisticOptions {
  readonly seed: number
  readonly count: number
  /** No event was seen after this time. */
  readonly nowMs: number
  /** How far back the events go. */
  readonly hours?: number
}

/**
 * `count` events in events.k8s.io form, with different names, in no order of time. Some are always
 * there: in `shop`, the pod `web-0` crashes in the last 15 minutes and five hours ago, and
 * preempts another pod.
 */
export function realisticEvents(options: RealisticOptions): readonly WireEvent[] {
  const { count, nowMs, hours = HOURS } = options
  const world = new World(new Random(options.seed), nowMs)
  const spanMs = hours * HOUR_MS
  world.crash(WEB_0, nowMs - 14 * MINUTE_MS)
  world.preempt(WEB_0, nowMs - 8 * MINUTE_MS)
  world.crash(WEB_0, nowMs - 5 * HOUR_MS)
  while (world.events.length < count) world.tell(nowMs - spanMs)
  return world.events.slice(0, count)
}

interface Pod extends Subject {
  readonly owner: string
  readonly node: string
}

const HOURS = 6
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const NODES = 12
const DIGITS = 'bcdfghjklmnpqrstvwxz2456789'
const NAMESPACES = ['shop', 'billing', 'search', 'platform', 'kube-system'] as const
const WORKLOADS = ['checkout', 'cart', 'api', 'worker', 'indexer', 'gateway', 'mailer'] as const

const WEB_0: Pod = {
  kind: 'Pod',
  apiVersion: 'v1',
  namespace: 'shop',
  name: 'web-0',
  uid: '0b9d3a51-6c1e-4b0e-9f0a-5d1c8f2e7a40',
  owner: 'web',
  node: 'node-03',
}

class World {
  readonly events: WireEvent[] = []
  readonly #random: Random
  readonly #nowMs: number

  constructor(random: Random, nowMs: number) {
    this.#random = random
    this.#nowMs = nowMs
  }

  /** One story that begins after `sinceMs`. */
  tell(sinceMs: number): void {
    const random = this.#random
    const atMs = Math.floor(random.between(sinceMs, this.#nowMs))
    const pod = random.chance(0.08) ? WEB_0 : this.#pod()
    const die = random.below(20)
    if (die < 8) this.#start(pod, atMs)
    else if (die < 12) this.crash(pod, atMs)
    else if (die < 14) this.#pending(pod, atMs)
    else if (die < 15) this.preempt(pod, atMs)
    else if (die < 16) this.#volume(pod, atMs)
    else if (die < 18) this.#job(atMs)
    else if (die < 19) this.#node(atMs)
    else this.#scale(pod, atMs)
  }

  crash(pod: Pod, atMs: number): void {
    const lastMs = this.#later(atMs, 10 * MINUTE_MS)
    const count = 2 + this.#random.below(80)
    this.#kubelet(pod, atMs, ['Warning', 'Unhealthy', 'Liveness probe failed: HTTP 503'])
    this.#kubelet(pod, atMs + 900, ['Normal', 'Killing', 'Stopping container app'])
    const note = `Back-off restarting failed container app in pod ${pod.name}_${pod.namespace}`
    this.#kubelet(pod, atMs + 2_000, ['Warning', 'BackOff', note], { lastMs, count })
  }

  /** `pod` takes the place of another one, which is named in `regarding`. */
  preempt(pod: Pod, atMs: number): void {
    const victim = this.#pod()
    const note = `Preempted by pod ${pod.uid} on node ${victim.node}`
    const what = { type: 'Normal', reason: 'Preempted', note, by: 'default-scheduler' } as const
    this.#new({ about: victim, ...what, firstMs: atMs }, pod)
    this.#kubelet(victim, atMs + 700, ['Normal', 'Killing', 'Stopping container app'])
  }

  #start(pod: Pod, atMs: number): void {
    const { namespace, name, node } = pod
    const owner = this.#object('ReplicaSet', namespace, pod.owner)
    this.#old({
      about: owner,
      type: 'Normal',
      reason: 'SuccessfulCreate',
      firstMs: atMs,
      note: `Created pod: ${name}`,
      by: 'replicaset-controller',
    })
    this.#new({
      about: pod,
      type: 'Normal',
      reason: 'Scheduled',
      by: 'default-scheduler',
      note: `Successfully assigned ${namespace}/${name} to ${node}`,
      firstMs: atMs + 40,
    })
    const image = `registry.example/${pod.owner}:v${this.#random.below(30)}`
    this.#kubelet(pod, atMs + 400, ['Normal', 'Pulling', `Pulling image "${image}"`])
    if (this.#random.chance(0.1)) {
      const repeated = {
        lastMs: this.#later(atMs, 5 * MINUTE_MS),
        count: this.#random.below(9) + 2,
      }
      const note = `Failed to pull image "${image}": not found`
      this.#kubelet(pod, atMs + 900, ['Warning', 'Failed', note], repeated)
      return
    }
    this.#kubelet(pod, atMs + 1_900, ['Normal', 'Pulled', `Successfully pulled image "${image}"`])
    this.#kubelet(pod, atMs + 2_000, ['Normal', 'Created', 'Created container: app'])
    this.#kubelet(pod, atMs + 2_100, ['Normal', 'Started', 'Started container app'])
  }

  #pending(pod: Pod, atMs: number): void {
    const repeated = {
      lastMs: this.#later(atMs, 20 * MINUTE_MS),
      count: 2 + this.#random.below(40),
    }
    this.#new({
      about: pod,
      type: 'Warning',
      reason: 'FailedScheduling',
      by: 'default-scheduler',
      note: `0/${NODES} nodes are available: ${NODES} Insufficient memory.`,
      firstMs: atMs,
      ...(this.#random.chance(0.6) ? { repeated } : {}),
    })
  }

  #volume(pod: Pod, atMs: number): void {
    const note = 'MountVolume.SetUp failed for volume "data": timed out waiting for the condition'
    this.#kubelet(pod, atMs, ['Warning', 'FailedMount', note])
    this.#old({
      about: pod,
      type: 'Normal',
      reason: 'SuccessfulAttachVolume',
      firstMs: atMs + 5_000,
      note: 'AttachVolume.Attach succeeded for volume "data"',
      by: 'attachdetach-controller',
    })
  }

  #job(atMs: number): void {
    const namespace = this.#random.pick(NAMESPACES)
    const job = this.#object('Job', namespace, `report-${29_000_000 + this.#random.below(9_999)}`)
    const by = 'job-controller'
    const created = `Created pod: ${job.name}-${this.#suffix(5)}`
    const isFailed = this.#random.chance(0.2)
    this.#old({
      about: job,
      type: 'Normal',
      reason: 'SuccessfulCreate',
      note: created,
      by,
      firstMs: atMs,
    })
    const end = isFailed
      ? ({ type: 'Warning', reason: 'BackoffLimitExceeded' } as const)
      : ({ type: 'Normal', reason: 'Completed' } as const)
    const note = isFailed ? 'Job has reached the specified backoff limit' : 'Job completed'
    this.#old({ about: job, ...end, note, by, firstMs: this.#later(atMs, 3 * MINUTE_MS) })
  }

  #node(atMs: number): void {
    const name = this.#nodeName()
    const about = this.#object('Node', '', name)
    const [type, reason] = this.#random.pick<readonly ['Normal' | 'Warning', string]>([
      ['Normal', 'NodeNotReady'],
      ['Normal', 'NodeHasSufficientMemory'],
      ['Warning', 'EvictionThresholdMet'],
      ['Warning', 'Rebooted'],
    ])
    const note = `Node ${name} status is now: ${reason}`
    const by = reason === 'NodeNotReady' ? 'node-controller' : 'kubelet'
    this.#old({ about, type, reason, note, by, host: name, firstMs: atMs })
  }

  #scale(pod: Pod, atMs: number): void {
    const about = this.#object('Deployment', pod.namespace, pod.owner)
    const note = `Scaled up replica set ${pod.owner} to ${1 + this.#random.below(9)}`
    const by = 'deployment-controller'
    this.#old({ about, type: 'Normal', reason: 'ScalingReplicaSet', note, by, firstMs: atMs })
    const scaler = this.#object('HorizontalPodAutoscaler', pod.namespace, pod.owner)
    const repeated = { lastMs: this.#later(atMs, HOUR_MS), count: 2 + this.#random.below(200) }
    this.#old({
      about: scaler,
      type: 'Warning',
      reason: 'FailedGetResourceMetric',
      firstMs: atMs,
      note: 'failed to get cpu utilization',
      by: 'horizontal-pod-autoscaler',
      repeated,
    })
  }

  #kubelet(
    pod: Pod,
    firstMs: number,
    [type, reason, note]: readonly ['Normal' | 'Warning', string, string],
    repeated?: Happening['repeated'],
  ): void {
    const fieldPath = 'spec.containers{app}'
    const what = {
      about: pod,
      type,
      reason,
      note,
      by: 'kubelet',
      host: pod.node,
      fieldPath,
      firstMs,
    }
    this.#old(repeated === undefined ? what : { ...what, repeated })
  }

  #old(what: Happening): void {
    this.events.push(oldStyle(this.#inThePast(what), this.#name(what), this.#random.chance(0.9)))
  }

  #new(what: Happening, related?: Subject): void {
    const instance = `${what.by}-control-plane-${1 + this.#random.below(3)}`
    this.events.push(newStyle(this.#inThePast(what), this.#name(what), { instance, related }))
  }

  /** Unique, as recorders name events: the object, and a number in hexadecimal digits. */
  #name({ about }: Happening): string {
    const unique = this.events.length.toString(16).padStart(6, '0')
    return `${about.name}.${this.#hex(10)}${unique}`
  }

  #inThePast(what: Happening): Happening {
    return { ...what, firstMs: this.#past(what.firstMs) }
  }

  #pod(): Pod {
    const owner = `${this.#random.pick(WORKLOADS)}-${this.#suffix(9)}`
    const subject = this.#object(
      'Pod',
      this.#random.pick(NAMESPACES),
      `${owner}-${this.#suffix(5)}`,
    )
    return { ...subject, owner, node: this.#nodeName() }
  }

  #object(kind: string, namespace: string, name: string): Subject {
    const uid = `${this.#hex(8)}-${this.#hex(4)}-4${this.#hex(3)}-9${this.#hex(3)}-${this.#hex(12)}`
    return { kind, apiVersion: API_VERSIONS[kind] ?? 'v1', namespace, name, uid }
  }

  #nodeName(): string {
    return `node-${String(1 + this.#random.below(NODES)).padStart(2, '0')}`
  }

  #suffix(length: number): string {
    return Array.from({ length }, () => DIGITS[this.#random.below(DIGITS.length)]).join('')
  }

  #hex(length: number): string {
    return Array.from({ length }, () => this.#random.below(16).toString(16)).join('')
  }

  #later(atMs: number, mostMs: number): number {
    return this.#past(atMs + Math.floor(this.#random.between(MINUTE_MS, mostMs)))
  }

  #past(atMs: number): number {
    return Math.min(atMs, this.#nowMs)
  }
}

const API_VERSIONS: Readonly<Record<string, string>> = {
  ReplicaSet: 'apps/v1',
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  HorizontalPodAutoscaler: 'autoscaling/v2',
}
