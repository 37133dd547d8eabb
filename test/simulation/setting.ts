/** Everything about a run that follows from its seed before it begins. */
import { Random } from '../support/random.ts'
import { type PolicyStep, planPolicies } from '../worlds/retention/policy-plan.ts'
import type { WorldLimits } from '../worlds/workload/contract.ts'
import type { Mix } from '../worlds/workload/workload.ts'
import { type HistorySetting, makeHistorySetting } from './history/setting.ts'
import { type MirrorSetting, makeMirrorSetting } from './mirror/setting.ts'
import type { WorldKind } from './world-kinds.ts'

export interface Storm {
  readonly begin: number
  readonly end: number
}

export interface Setting {
  readonly seed: number
  readonly replicas: number
  readonly members: number
  readonly durationMs: number
  readonly operationsPerSecond: number
  /** The time that replicas have for the final reads. */
  readonly finalMs: number
  readonly quotaBytes: number
  /** Longer watch responses are sent in fragments. */
  readonly watchFragmentBytes: number
  /** In storms, the first changes of every so many watches of the past lack their previous values. */
  readonly watchLacksPreviousEvery: number | undefined
  /** How likely a member has RangeStream (etcd 3.7) after each start, as in a rolling upgrade. */
  readonly rangeStreamShare: number
  readonly limits: WorldLimits
  /** At least one; the first applies from the beginning. */
  readonly policies: readonly PolicyStep[]
  readonly mix: Mix
  /** Earlier states that each replica retains for paged lists. */
  readonly statesMax: number
  readonly storms: readonly Storm[]
  /** Set for a world with a mirrored cluster, whose clients write to its origin only. */
  readonly mirror?: MirrorSetting | undefined
  /** Set for a world with an archive. */
  readonly history?: HistorySetting | undefined
}

const minute = 60_000
/** Longer than it takes a ring of changes to pass a watcher. */
const stallMsMax = 150_000

export interface SettingOptions {
  readonly seed: number
  readonly durationMs: number
  readonly replicas?: number | undefined
  readonly operationsPerSecond?: number | undefined
  /** Default true. Without storms the world is calm from the beginning to the end. */
  readonly hasStorms?: boolean | undefined
  /** Default: clients of the event API. */
  readonly world?: WorldKind | undefined
}

/** In some runs the calm between storms is long enough for everything to expire and be compacted. */
function makeStorms(durationMs: number, random: Random): readonly Storm[] {
  const calmMsMax = random.pick([2, 3, 8]) * minute
  const storms: Storm[] = []
  let at = random.between(5_000, 20_000)
  while (at < durationMs) {
    const end = Math.min(durationMs, at + random.between(0.3, 3) * minute)
    storms.push({ begin: at, end })
    at = end + random.between(0.5 * minute, calmMsMax)
  }
  return storms
}

/** A world of a mirror: `operationsPerSecond` are writes at the origin. */
export function makeMirrorWorld(options: SettingOptions): Setting {
  const random = new Random(options.seed ^ 0x3177012)
  const { operationsPerSecond: writesPerSecond } = options
  const mirror = makeMirrorSetting(random, { writesPerSecond })
  const storms: Storm[] = []
  let at = random.between(5_000, 20_000)
  while (at < options.durationMs && options.hasStorms !== false) {
    const end = Math.min(options.durationMs, at + random.between(0.3, 3) * minute)
    storms.push({ begin: at, end })
    // Every other calm is long enough for everything to be mirrored again.
    at = end + random.pick([0.1, 0.5, 2.2]) * minute
  }
  const replicas = options.replicas ?? random.pick([2, 2, 3] as const)
  const members = random.pick([1, 3, 3] as const)
  const eventTtlMs = mirror.needsClocks ? random.pick([5, 60]) * minute : 30 * 24 * 60 * minute
  return {
    ...makeSetting(options),
    replicas,
    members,
    finalMs: 5_000,
    policies: [{ at: 0, policy: { rules: [], budgets: [], lifetime: eventTtlMs } }],
    limits: {
      eventTtlMs,
      compactionIntervalMs: random.pick([60_000, 3 * minute]),
      driftMax: random.pick([0, 0.001, 0.01]),
      historyChangesMax: random.pick([500, 5_000]),
      stallMsMax,
    },
    storms,
    mirror,
  }
}

/** A world with an archive. */
export function makeHistoryWorld(options: SettingOptions): Setting {
  const random = new Random(options.seed ^ 0x415c417e)
  const { durationMs } = options
  const history = makeHistorySetting(random, durationMs)
  const eventTtlMs = random.pick([30_000, 60_000, 90_000])
  const budgets = random.chance(0.2) ? [{ per: 'Cluster' as const, events: 60 }] : []
  return {
    ...makeSetting(options),
    replicas: options.replicas ?? random.pick([2, 2, 3] as const),
    members: random.pick([1, 3, 3] as const),
    operationsPerSecond: options.operationsPerSecond ?? random.pick([5, 20]),
    finalMs: 1_000,
    policies: [{ at: 0, policy: { rules: [], budgets, lifetime: eventTtlMs } }],
    limits: {
      eventTtlMs,
      compactionIntervalMs: random.pick([20_000, 60_000]),
      driftMax: random.pick([0, 0.001, 0.01]),
      // Long changes are slow to read again from the simulated etcd.
      historyChangesMax: history.noteLength > 1_000 ? 5_000 : random.pick([500, 5_000]),
      stallMsMax,
    },
    history,
  }
}

/** The first storm begins when replicas have started; the world is calm between storms. */
export function makeSetting(options: SettingOptions): Setting {
  const random = new Random(options.seed ^ 0x5e771e5)
  const eventTtlMs = random.pick([90_000, 2 * minute, 3 * minute])
  const storms = options.hasStorms === false ? [] : makeStorms(options.durationMs, random)
  return {
    seed: options.seed,
    replicas: options.replicas ?? 3,
    members: random.chance(0.85) ? 3 : random.pick([1, 5]),
    durationMs: options.durationMs,
    operationsPerSecond: options.operationsPerSecond ?? 50,
    finalMs: 15_000,
    quotaBytes: 64 * 1024 * 1024,
    watchFragmentBytes: random.pick([32_768, 2 * 1024 * 1024]),
    rangeStreamShare: new Random(options.seed ^ 0x57e4).pick([0, 0.5, 1]),
    limits: {
      eventTtlMs,
      compactionIntervalMs: random.pick([60_000, 90_000, 3 * minute]),
      driftMax: random.pick([0, 0.001, 0.01]),
      historyChangesMax: random.pick([64, 500, 5_000]),
      stallMsMax,
    },
    mix: {
      watchers: random.pick([3, 6, 15]),
      writeShare: random.pick([0.05, 0.1, 0.2, 0.4]),
      listShare: random.pick([0.005, 0.01, 0.03, 0.06]),
    },
    statesMax: random.pick([8, 256, 256]),
    policies: planPolicies(options.seed, { durationMs: options.durationMs, eventTtlMs }),
    storms,
    watchLacksPreviousEvery: random.pick([undefined, 3]),
  }
}
