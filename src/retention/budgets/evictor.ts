/**
 * Enforces budgets: while a namespace or a cluster has more events or bytes than its budget allows, the
 * oldest are deleted, Warnings last. A cluster's budget is enforced on its largest namespaces, which
 * are levelled: no namespace can displace the events of smaller ones.
 *
 * The decision is based on counts of the cache. Each batch lists the oldest events with a consistent
 * read, which includes all earlier deletes, and then reads the counts: a batch never deletes more than
 * the excess at that moment, and an event that counts for both a namespace and its cluster is deleted
 * once. Like the sweeper's, deletes compare the version: an event changed in the meantime is no longer
 * the oldest, and stays.
 *
 * For the budget of a namespace, oldest means least recently seen. Wall clocks decide that order, and
 * nothing else. Among each type, events dated in the future go first: otherwise they would never be
 * deleted, at the expense of others. For the budget of a cluster, whose writers do not trust each
 * other, oldest means least recently written: see oldest-writes.ts.
 */
import type { Term } from '../../election/term.ts'
import { pause } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { StorageError } from '../../storage/errors.ts'
import { valueRequirement } from '../../storage/requires.ts'
import type { EventSelector, EventStorage, StoredEvent } from '../../storage/storage.ts'
import type { StoredSize, StoredSizes } from '../../storage/stored-sizes.ts'
import { storedBytes } from '../../storage/trailer.ts'
import { deleteInSlices, deleteUnchanged, isRetryable } from '../guarded-delete.ts'
import type { RetentionBudget, RetentionPolicy } from '../policy.ts'
import { EvictionLog } from './eviction-log.ts'
import { Frontiers, type Place } from './frontiers.ts'
import { Largest, levelled, type Measured } from './levelling.ts'
import { OldestWrites, type OldWrite } from './oldest-writes.ts'

const checkEveryMs = 200
/** Tolerated lead of clients' clocks. */
const aheadMsMax = 10 * 60_000
/** The sweeper's batch size: clients' writes wait for at most a few transactions. */
const batchMax = 500

export interface EvictorOptions {
  /** Must support lists ordered by time. */
  readonly storage: Pick<EventStorage, 'list' | 'delete'>
  readonly sizes: StoredSizes
  readonly policy: () => RetentionPolicy
  /** False while expired events are still stored: they would count against budgets. */
  readonly isReady: () => boolean
  readonly isVerified: () => boolean
  /** The event has the version that it had before. */
  readonly onEvicted: (
    evicted: Pick<StoredEvent, 'key' | 'version'>,
    budget: RetentionBudget,
  ) => void
  readonly clock: Clock
  readonly wallTime: () => number
  readonly lane: Lane
  readonly log: Log
}

/** A namespace or a cluster that has more than its budget. */
interface Exceeded {
  readonly size: StoredSize
  readonly budget: RetentionBudget
}

type Scope = Pick<StoredSize, 'cluster' | 'namespace'>

type Victim = Pick<StoredEvent, 'key' | 'version'>

/** The amounts above the budget. */
interface Excess {
  readonly events: number
  readonly bytes: number
}

const warnings: EventSelector = {
  matches: ({ fields }) => fields.type === 'Warning',
  requires: { values: [valueRequirement('type', '=', 'Warning')], isAll: true },
}
const others: EventSelector = {
  matches: ({ fields }) => fields.type !== 'Warning',
  requires: { values: [valueRequirement('type', '!=', 'Warning')], isAll: true },
}

function seenAfter(sinceMs: number, { matches, requires }: EventSelector): EventSelector {
  return {
    matches: (stored) => stored.fields.lastSeenMs >= sinceMs && matches(stored),
    requires: { ...requires, sinceMs },
  }
}

export class Evictor {
  readonly #options: EvictorOptions
  readonly #frontiers: Frontiers
  readonly #oldestWrites: OldestWrites
  readonly #evictions: EvictionLog

  constructor(options: EvictorOptions) {
    this.#options = options
    this.#frontiers = new Frontiers(options.clock)
    this.#oldestWrites = new OldestWrites(options, [others, warnings])
    this.#evictions = new EvictionLog(options.clock, options.log)
  }

  /** Enforces the budgets until the term is over. Rejects only on a bug. */
  async run(term: Term): Promise<void> {
    try {
      await this.#enforce(term)
    } finally {
      this.#evictions.write({ isEnd: true })
    }
  }

  async #enforce(term: Term): Promise<void> {
    const { log, isReady } = this.#options
    const { signal } = term
    const backoff = new Backoff({ firstMs: 250, mostMs: 4_000 })
    this.#frontiers.clear()
    this.#oldestWrites.clear()
    while (!signal.aborted && term.isHeld()) {
      try {
        const isBehind = isReady() && (await this.#evictSome(term))
        backoff.reset()
        this.#evictions.write()
        if (!isBehind) await pause(checkEveryMs, signal)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        if (signal.aborted) return
        const waitMs = Math.max(backoff.next(), error.retryAfterMs ?? 0)
        log.warn('Enforcing budgets failed; will retry', {
          err: error,
          waitMs: Math.round(waitMs),
        })
        await pause(waitMs, signal)
      }
    }
  }

  /** Evicts one batch per namespace, then per cluster. Returns whether one was not enough. */
  async #evictSome(term: Term): Promise<boolean> {
    let isBehind = false
    for (const exceeded of await this.#exceeded()) {
      if (!term.isHeld()) return false
      const isOfCluster = exceeded.size.namespace === undefined
      const evicted = isOfCluster
        ? await this.#evictFromCluster(exceeded, term)
        : await this.#evictBatch(exceeded, term)
      isBehind ||= evicted === batchMax
    }
    return isBehind
  }

  async #exceeded(): Promise<readonly Exceeded[]> {
    const { sizes, policy, lane } = this.#options
    const { budgets } = policy()
    if (budgets.length === 0) return []
    // Most namespaces are far below every budget, so theirs need not be looked up.
    const eventsMin = Math.min(...budgets.map(({ events = Number.POSITIVE_INFINITY }) => events))
    const bytesMin = Math.min(...budgets.map(({ bytes = Number.POSITIVE_INFINITY }) => bytes))
    const found: Exceeded[] = []
    using slices = lane.slices()
    for (const size of sizes.all() ?? []) {
      if (slices.isOver()) await slices.next()
      if (size.events <= eventsMin && size.bytes <= bytesMin) continue
      const budget = policy().budgetOf(size.cluster, size.namespace)
      if (budget !== undefined && excessOf(size, budget) !== undefined) found.push({ size, budget })
    }
    const clustersLast = ({ size }: Exceeded) => (size.namespace === undefined ? 1 : 0)
    return found.sort((one, other) => clustersLast(one) - clustersLast(other))
  }

  async #evictBatch({ size, budget }: Exceeded, term: Term): Promise<number> {
    const { sizes } = this.#options
    const { cluster, namespace } = size
    const aheadMs = this.#options.wallTime() + aheadMsMax
    const inOrder = [seenAfter(aheadMs, others), others, seenAfter(aheadMs, warnings), warnings]
    for (const selector of inOrder) {
      const oldest = await this.#oldest({ cluster, namespace }, selector, term.signal)
      if (oldest.length === 0) continue
      // Read after the list, which includes everything deleted before.
      const now = sizes.of(cluster, namespace)
      const excess = now && excessOf(now, budget)
      if (excess === undefined) return 0
      const victims = victimsOf(oldest, excess)
      const evicted = await this.#evict(victims, budget, term)
      if (selector === others) this.#frontiers.advance(nameOf(size), victims.at(-1))
      return evicted
    }
    return 0
  }

  /** Evicts one batch of the oldest events of the largest namespaces. */
  async #evictFromCluster({ size, budget }: Exceeded, term: Term): Promise<number> {
    const { storage, sizes, lane } = this.#options
    const { cluster } = size
    const { signal } = term
    // A consistent read, so that the counts below include everything deleted before.
    await storage.list(
      { cluster, namespace: undefined },
      { limit: 1, isOnlyPage: true, signal, lane },
    )
    const now = sizes.of(cluster, undefined)
    const excess = now && excessOf(now, budget)
    if (now === undefined || excess === undefined) return 0
    const victims: Victim[] = []
    for (const { namespace, amount } of await this.#sharesOf(now, excess)) {
      const scope = { cluster, namespace }
      const oldest = await this.#oldestWrites.of(scope, signal)
      const part = excess.events > 0 ? { events: amount, bytes: 0 } : { events: 0, bytes: amount }
      victims.push(...this.#oldestWrites.take(scope, countOf(oldest, part)))
      if (victims.length >= batchMax || !term.isHeld()) break
    }
    // The next pass searches for replacements of those changed or deleted in the meantime.
    return this.#evict(victims, budget, term)
  }

  /** How much of the excess each of the largest namespaces gives up; at most one batch in all. */
  async #sharesOf(
    { cluster, events, bytes }: StoredSize,
    excess: Excess,
  ): Promise<readonly Measured[]> {
    const { sizes, lane } = this.#options
    const isOfEvents = excess.events > 0
    const largest = new Largest(batchMax + 1)
    {
      using slices = lane.slices()
      for (const size of sizes.all() ?? []) {
        if (slices.isOver()) await slices.next()
        const { namespace } = size
        if (size.cluster !== cluster || namespace === undefined) continue
        largest.add({ namespace, amount: isOfEvents ? size.events : size.bytes })
      }
    }
    const amountMax = isOfEvents ? batchMax : Math.ceil((bytes / Math.max(1, events)) * batchMax)
    return levelled(
      largest.sorted(),
      Math.min(isOfEvents ? excess.events : excess.bytes, amountMax),
    )
  }

  async #oldest(
    scope: Scope,
    selector: EventSelector,
    signal: AbortSignal,
  ): Promise<readonly StoredEvent[]> {
    const { storage, clock, lane } = this.#options
    // Pinning the snapshot would make every following delete copy parts of the indexes.
    const reading = { isOnlyPage: true, signal, lane }
    const listed = async (place?: Place) => {
      const { items } = await storage.list(scope, {
        order: 'oldest',
        selector,
        limit: batchMax,
        ...reading,
        ...place,
      })
      return items
    }
    // When Warnings are evicted, no older events of another type are left to skip.
    if (selector !== others) return listed()
    const place = this.#frontiers.of(nameOf(scope))
    const next = place === undefined ? [] : await listed(place)
    if (next.length > 0) return next
    const begunAt = clock.now()
    const newest = await storage.list(scope, { order: 'newest', limit: 1, ...reading })
    const found = await listed()
    this.#frontiers.begin(nameOf(scope), begunAt, found.length > 0 ? undefined : newest.items[0])
    return found
  }

  async #evict(victims: readonly Victim[], budget: RetentionBudget, term: Term): Promise<number> {
    // All deletes end before the first failure is reported and before the next batch is selected.
    const results = await deleteInSlices(
      victims,
      (victim) => this.#delete(victim, budget, term),
      () => term.isHeld(),
    )
    for (const result of results) if (result instanceof StorageError) throw result
    return results.filter((isDeleted) => isDeleted).length
  }

  /** Returns the failure if the delete is to be retried. */
  async #delete(
    victim: Victim,
    budget: RetentionBudget,
    term: Term,
  ): Promise<boolean | StorageError> {
    const { storage, isVerified, onEvicted, policy } = this.#options
    const { cluster, namespace } = victim.key
    const isWanted = () =>
      term.isHeld() &&
      policy().budgetOf(cluster, budget.per === 'Cluster' ? undefined : namespace) === budget
    const outcome = await deleteUnchanged(victim, { storage, isVerified, isWanted })
    if (outcome === 'gone' || 'changed' in outcome) return false
    if ('failed' in outcome) return isRetryable(outcome.failed) && outcome.failed
    onEvicted(victim, budget)
    this.#evictions.count(outcome.deleted, budget)
    return true
  }
}

function nameOf({ cluster, namespace = '' }: Scope): string {
  return `${cluster}/${namespace}`
}

/** Undefined within the budget. */
function excessOf({ events, bytes }: StoredSize, budget: RetentionBudget): Excess | undefined {
  const excess = {
    events: events - (budget.events ?? Number.POSITIVE_INFINITY),
    bytes: bytes - (budget.bytes ?? Number.POSITIVE_INFINITY),
  }
  return excess.events > 0 || excess.bytes > 0 ? excess : undefined
}

/** The oldest events that together make up the excess. */
function victimsOf(oldest: readonly StoredEvent[], excess: Excess): readonly StoredEvent[] {
  const sizes = oldest.map((stored) => ({ bytes: storedBytes(stored) }))
  return oldest.slice(0, countOf(sizes, excess))
}

/** How many of the oldest together make up the excess. */
function countOf(oldest: readonly Pick<OldWrite, 'bytes'>[], excess: Excess): number {
  let bytes = 0
  let count = 0
  for (const write of oldest) {
    if (count >= excess.events && bytes >= excess.bytes) break
    bytes += write.bytes
    count++
  }
  return count
}
