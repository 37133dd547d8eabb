import type { CachedStorage } from '../cache/cached-storage.ts'
import type { SeenTimes } from '../cache/read/seen-times.ts'
import { TopSlots } from '../cache/read/top-slots.ts'
import type {
  WindowHistory,
  WindowList,
  WindowQuery,
  WindowStatus,
  WindowStatuses,
} from '../endpoints/objects/retention-windows.ts'
import { formatLongDuration } from '../lib/go/duration.ts'
import { LaneTurns } from '../lib/lane-turns.ts'
import type { InLane } from '../lib/run-queue.ts'
import type { Totals } from '../retention/account/totals.ts'
import { effectiveRules, selectionText } from '../retention/effective-rules.ts'
import type { RetentionPolicy, RetentionRule } from '../retention/policy.ts'
import type { Retention } from '../retention/retention.ts'
import { throwIfAborted } from '../storage/aborted-read.ts'
import { StorageError } from '../storage/errors.ts'
import type { EventScope } from '../storage/storage.ts'
import type { StoredSize } from '../storage/stored-sizes.ts'

type Memory = Pick<CachedStorage, 'sizes'> & { readonly oldest: Pick<SeenTimes, 'in'> }
type RetentionState = Pick<Retention, 'policy' | 'totals'>

/** A policy may have thousands of rules and names; a window shows this many, and this much of each. */
const RULES_MAX = 32
const SELECTS_LENGTH_MAX = 128
/** Each list holds an entry for every namespace that has events. */
const LISTS_MAX = 8

interface ArchivedHistory extends Pick<WindowHistory, 'position' | 'positionAtMs'> {
  /** The start of the oldest day that the archive has of a cluster. */
  oldestMsOf(cluster: string): number | undefined
  /** From this time on, memory has every event. Negative infinity: it has all there are. */
  windowStart(scope: EventScope): number
}

/**
 * Joins the sizes in memory with the policy of this replica, with the account and with the archive.
 * Without `history` nothing is archived; it returns undefined until it is known what is.
 */
export function windowStatuses(
  memory: Memory,
  retention: RetentionState,
  history?: () => ArchivedHistory | undefined,
): WindowStatuses {
  const turns = new LaneTurns(LISTS_MAX)
  return {
    hasHistory: history !== undefined,
    list: (query) =>
      turns.take(query.lane, async () => {
        const entered = query.lane.enter(query.signal)
        if (entered !== undefined) await entered
        throwIfAborted(query.signal)
        const archive = history?.()
        const { first, hidden } = await firstSizes(memory, query, archive)
        const joined = { ...query, retention, archive }
        return { windows: await statusesOf(first, memory, joined), hidden }
      }),
  }
}

/** The first wanted sizes by name. */
async function firstSizes(
  { sizes }: Pick<Memory, 'sizes'>,
  query: WindowQuery,
  archive: ArchivedHistory | undefined,
): Promise<{ first: readonly StoredSize[] } & Pick<WindowList, 'hidden'>> {
  const known = sizes.all()
  if (known === undefined) {
    throw new StorageError({ kind: 'unavailable', message: 'the events are being loaded' })
  }
  const wanted: StoredSize[] = []
  const top = new TopSlots(query.windowsMax, (one, other) => byName(wanted[one], wanted[other]))
  using slices = query.lane.slices(query)
  for (const size of known) {
    if (isWanted(size, query)) top.offer(wanted.push(size) - 1)
    if (!slices.isOver()) continue
    await slices.next()
    throwIfAborted(query.signal)
  }
  const { cluster, namespace } = query
  const isThere = wanted.some((size) => size.namespace === namespace)
  if (cluster !== undefined && !isThere && archive?.oldestMsOf(cluster) !== undefined) {
    // Its events have expired, but are archived.
    const size = sizes.of(cluster, namespace)
    if (size !== undefined && query.isSelected(size)) top.offer(wanted.push(size) - 1)
  }
  const first = top.sorted().flatMap((index) => wanted[index] ?? [])
  return { first, hidden: top.dropped }
}

function isWanted(size: StoredSize, { cluster, namespace, isSelected }: WindowQuery): boolean {
  return (
    (cluster === undefined || size.cluster === cluster) &&
    (namespace === undefined || size.namespace === namespace) &&
    isSelected(size)
  )
}

async function statusesOf(
  sizes: readonly StoredSize[],
  { oldest }: Pick<Memory, 'oldest'>,
  joined: InLane & {
    readonly retention: RetentionState
    readonly archive: ArchivedHistory | undefined
  },
): Promise<readonly WindowStatus[]> {
  const { archive, lane, signal } = joined
  const { policy, totals } = joined.retention
  const statuses: WindowStatus[] = []
  const lifetimes = new Lifetimes(policy)
  using slices = lane.slices({ signal })
  for (const size of sizes) {
    const { cluster, namespace } = size
    const evicted = evictedOf(size, totals)
    const found = oldest.in({ cluster, namespace }, lane)
    const oldestMs = found instanceof Promise ? await found : found
    if (found instanceof Promise) slices.begin()
    const budget = policy.budgetOf(cluster, namespace)
    statuses.push({
      ...size,
      oldestMs,
      ...lifetimes.of(size),
      budget: budget && { name: budget.name, events: budget.events, bytes: budget.bytes },
      evicted,
      history: archive && historyOf(archive, { cluster, namespace }),
    })
    if (!slices.isOver()) continue
    await slices.next()
    throwIfAborted(signal)
  }
  return statuses
}

function historyOf(
  archive: ArchivedHistory,
  { cluster, namespace }: Pick<StoredSize, 'cluster' | 'namespace'>,
): WindowHistory {
  const { position, positionAtMs } = archive
  const startMs = archive.windowStart({ cluster, namespace })
  return {
    oldestMs: archive.oldestMsOf(cluster),
    untilMs: Number.isFinite(startMs) ? startMs : undefined,
    position,
    positionAtMs,
  }
}

/** Undefined when it is not known: the account has no place of its own for each name. */
function evictedOf({ cluster, namespace }: StoredSize, totals: Totals): number | undefined {
  const kind = namespace === undefined ? 'clusters' : 'namespaces'
  const count = totals.get(kind, namespace === undefined ? cluster : `${cluster}/${namespace}`)
  return count === 0 && totals.hasOthers(kind) ? undefined : count
}

type Lifetime = WindowStatus['lifetimes'][number]

/** How rules are shown. Windows share the texts of a rule, which may have thousands of names. */
class Lifetimes {
  readonly #policy: RetentionPolicy
  readonly #ofClusters = new Map<RetentionRule, Lifetime>()
  readonly #ofNamespaces = new Map<RetentionRule, Lifetime>()

  constructor(policy: RetentionPolicy) {
    this.#policy = policy
  }

  of({ cluster, namespace }: StoredSize): Pick<WindowStatus, 'lifetimes' | 'hiddenRules'> {
    const rules = effectiveRules(this.#policy, cluster, namespace)
    const lifetimes = rules.slice(0, RULES_MAX).map((rule) => this.#shown(rule, namespace))
    return { lifetimes, hiddenRules: rules.length - lifetimes.length }
  }

  #shown(rule: RetentionRule, namespace: string | undefined): Lifetime {
    const known = namespace === undefined ? this.#ofClusters : this.#ofNamespaces
    let lifetime = known.get(rule)
    if (lifetime === undefined) {
      lifetime = {
        rule: rule.name,
        selects: shortened(selectionText(rule, namespace)),
        lifetime: rule.lifetime === 'never' ? 'never' : formatLongDuration(rule.lifetime),
      }
      known.set(rule, lifetime)
    }
    return lifetime
  }
}

function shortened(text: string): string {
  if (text.length <= SELECTS_LENGTH_MAX) return text
  return `${text.slice(0, SELECTS_LENGTH_MAX - 1).toWellFormed()}…`
}

/** Sorts by cluster, then by namespace; a cluster comes before its namespaces. */
function byName(one: StoredSize | undefined, other: StoredSize | undefined): number {
  if (one === undefined || other === undefined) return 0
  if (one.cluster !== other.cluster) return one.cluster < other.cluster ? -1 : 1
  return (one.namespace ?? '') < (other.namespace ?? '') ? -1 : 1
}
