/** Compares the workloads that are told for pods with those that they have. */
import { KnownOwners } from '../../src/incidents/known-owners.ts'
import { type Workload, workloadByName } from '../../src/incidents/workload.ts'
import { type EventFields, fieldsIn } from '../../src/storage/event-fields.ts'
import type { MadePod, Named } from './made-workloads.ts'
import { Random } from './random.ts'

export const SOURCES = ['names', 'events', 'owners'] as const
/** Names alone; events, and names for what they do not tell; owner references and both others. */
export type Source = (typeof SOURCES)[number]

/** The least share of pods that must be right. */
export const LEAST: Readonly<Record<Source, number>> = { names: 0.95, events: 0.95, owners: 0.99 }

export interface Wrong {
  readonly pod: MadePod
  readonly found: Workload
}

export interface Judgement {
  readonly pods: number
  readonly wrong: Readonly<Record<Source, readonly Wrong[]>>
  /** Those that got the workload of a pod in another namespace or cluster. */
  readonly crossed: readonly Wrong[]
}

export type Tell = (cluster: string, fields: EventFields) => Workload

const CLUSTER = 'here'
/** Some events are lost: recorders drop those that come too fast. */
const LOST = 0.05
/** The recorder combines the notes of events that are similar to so many others. */
const COMBINED_AFTER = 10

/** `spoil` replaces what tells the workload, to show that a mistake is found. */
export function judge(
  pods: readonly MadePod[],
  seed: number,
  spoil: (tell: Tell) => Tell = (tell) => tell,
): Judgement {
  const byEvents = new KnownOwners()
  const byOwners = new KnownOwners()
  learnEvents(pods, new Random(seed), [byEvents, byOwners])
  learnOwners(pods, byOwners)
  const tellers: Readonly<Record<Source, Tell>> = {
    names: spoil((_cluster, { regarding }) => workloadByName(regarding)),
    events: spoil((cluster, fields) => byEvents.resolve(cluster, fields)),
    owners: spoil((cluster, fields) => byOwners.resolve(cluster, fields)),
  }
  const wrongBy = (source: Source): readonly Wrong[] =>
    pods.flatMap((pod) => {
      const found = tellers[source](CLUSTER, about('Pod', pod.name, pod.namespace))
      return isSame(found, pod.workload) ? [] : [{ pod, found }]
    })
  const wrong = { names: wrongBy('names'), events: wrongBy('events'), owners: wrongBy('owners') }
  return {
    pods: pods.length,
    wrong,
    crossed: [...crossedIn(wrong.events), ...crossedIn(wrong.owners)],
  }
}

export function rightShare({ pods, wrong }: Judgement, source: Source): number {
  return 1 - wrong[source].length / pods
}

/** What a judgement fails for; empty if it passes. */
export function problemsOf(judgement: Judgement): readonly string[] {
  const low = SOURCES.filter((source) => rightShare(judgement, source) < LEAST[source]).map(
    (source) => `by ${source}: ${percent(rightShare(judgement, source))} are right`,
  )
  const { crossed } = judgement
  if (crossed.length === 0) return low
  return [...low, `${crossed.length} pods are assigned to another namespace`]
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`
}

/** All events that tell owners, in each namespace that of a stranger as well, who names its pods. */
function learnEvents(
  pods: readonly MadePod[],
  random: Random,
  learners: readonly KnownOwners[],
): void {
  const counts = new Map<string, number>()
  const learn = (namespace: string, fields: EventFields, cluster = CLUSTER): void => {
    for (const known of learners) known.learn({ cluster, namespace }, fields)
  }
  for (const pod of pods) {
    const { namespace, name, owners } = pod
    let child = name
    for (const owner of owners) {
      const path = `${namespace}/${owner.kind}/${owner.name}`
      const count = counts.get(path) ?? 0
      counts.set(path, count + 1)
      const fields = created(owner, child, namespace, count >= COMBINED_AFTER)
      if (!random.chance(LOST)) learn(namespace, fields)
      child = owner.name
    }
    for (const stranger of strangers(name)) {
      // The same names belong to others elsewhere, and notes name pods of other namespaces.
      learn(ELSEWHERE, created(stranger, name, ELSEWHERE, false))
      learn(namespace, created(stranger, name, namespace, false), 'elsewhere')
      learn(ELSEWHERE, created(stranger, name, namespace, false))
    }
  }
}

const ELSEWHERE = 'elsewhere'

function strangers(pod: string): readonly Named[] {
  return [{ kind: 'ReplicationController', name: pod.slice(0, Math.max(1, pod.lastIndexOf('-'))) }]
}

function learnOwners(pods: readonly MadePod[], known: KnownOwners): void {
  for (const { namespace, name, owners } of pods) {
    let child: Named = { kind: 'Pod', name }
    for (const owner of owners) {
      if (OWNED.includes(child.kind)) known.own(CLUSTER, namespace, child, owner)
      child = owner
    }
    if (OWNED.includes(child.kind)) known.own(CLUSTER, namespace, child, undefined)
    const [stranger] = strangers(name)
    known.own(CLUSTER, ELSEWHERE, { kind: 'Pod', name }, stranger)
  }
}

const OWNED = ['Pod', 'ReplicaSet', 'Job']

function created(owner: Named, child: string, namespace: string, isCombined: boolean): EventFields {
  const { kind, name } = owner
  const [reason, note] = told(owner, child)
  const whole = isCombined ? `(combined from similar events): ${note}` : note
  return fieldsIn({ reason, note: whole, regarding: { kind, name, namespace } })
}

function told({ kind, name }: Named, child: string): readonly [string, string] {
  if (kind === 'Deployment')
    return ['ScalingReplicaSet', `Scaled up replica set ${child} from 0 to 3`]
  if (kind === 'CronJob') return ['SuccessfulCreate', `Created job ${child}`]
  if (kind === 'StatefulSet') {
    return ['SuccessfulCreate', `create Pod ${child} in StatefulSet ${name} successful`]
  }
  return ['SuccessfulCreate', `Created pod: ${child}`]
}

function about(kind: string, name: string, namespace: string): EventFields {
  return fieldsIn({ reason: 'BackOff', regarding: { kind, name, namespace } })
}

function isSame(found: Workload, expected: Named): boolean {
  return found.kind === expected.kind && found.name === expected.name
}

function crossedIn(wrong: readonly Wrong[]): readonly Wrong[] {
  return wrong.filter(({ pod, found }) => strangers(pod.name).some((one) => isSame(found, one)))
}
