/**
 * Enforces budgets: while a namespace or a cluster has more events, or more bytes, than its budget,
 * the oldest are deleted, those that are not Warnings first.
 *
 * What is deleted is decided from counts that memory keeps. Each batch lists the oldest events with a
 * consistent read, which includes all deletes before, and reads the counts after that: a batch never
 * deletes more than what is too much at that moment, and an event that counts for a namespace and for
 * its cluster is deleted once. Deletes are guarded by the version, like those of the sweeper: an event
 * that was changed meanwhile is no longer the oldest, and stays.
 *
 * Oldest means seen last the longest ago. Wall clocks decide about that, and only about the order.
 */
import type { Term } from '../../election/term.ts'
import { pause } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import type { Log } from '../../lib/log/log.ts'
import { yieldToEventLoop } from '../../lib/yield.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventSelector, EventStorage, StoredEvent } from '../../storage/storage.ts'
import type { StoredSize, StoredSizes } from '../../storage/stored-sizes.ts'
import { deleteUnchanged, isRetryable } from '../guarded-delete.ts'
import type { RetentionBudget, RetentionPolicy } from '../policy.ts'

const checkEveryMs = 200
/** As in the sweeper: writes of clients wait for at most a few transactions. */
const batchMax = 500
/** Deletes started between two yields. */
const deletesPerSlice = 50
/** Namespaces and clusters compared between two yields: about a millisecond. */
const comparedPerSlice = 2_000

export interface EvictorOptions {
  /** Must serve lists in the order of time. */
  readonly storage: Pick<EventStorage, 'list' | 'delete'>
  readonly sizes: StoredSizes
  readonly policy: () => RetentionPolicy
  /** False while events are stored that have expired already: they would count, and soon do not. */
  readonly isReady: () => boolean
  readonly isVerified: () => boolean
  readonly onEvicted: (evicted: StoredEvent, budget: RetentionBudget) => void
  readonly log: Log
}

/** A namespace or a cluster that has more than its budget. */
interface Exceeded {
  readonly size: StoredSize
  readonly budget: RetentionBudget
}

/** How much is too much. */
interface Excess {
  readonly events: number
  readonly bytes: number
}

const warnings: EventSelector = {
  matches: ({ fields }) => fields.type === 'Warning',
  requires: { type: 'Warning', isAll: true },
}
const others: EventSelector = {
  matches: ({ fields }) => fields.type !== 'Warning',
  requires: { not: { type: 'Warning' }, isAll: true },
}

export class Evictor {
  readonly #options: EvictorOptions

  constructor(options: EvictorOptions) {
    this.#options = options
  }

  /** Enforces the budgets until the term is over. Rejects on a bug only. */
  async run(term: Term): Promise<void> {
    const { log, isReady } = this.#options
    const { signal } = term
    const backoff = new Backoff({ firstMs: 250, mostMs: 4_000 })
    while (!signal.aborted && term.isHeld()) {
      try {
        const evicted = isReady() ? await this.#evictSome(term) : 0
        backoff.reset()
        if (evicted === 0) await pause(checkEveryMs, signal)
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

  /** One batch for each namespace, then for each cluster; returns how many events were deleted. */
  async #evictSome(term: Term): Promise<number> {
    let evicted = 0
    for (const exceeded of await this.#exceeded()) {
      if (term.signal.aborted || !term.isHeld()) break
      evicted += await this.#evictBatch(exceeded, term.signal)
    }
    return evicted
  }

  /** Those that have more than their budget now. */
  async #exceeded(): Promise<readonly Exceeded[]> {
    const { sizes, policy } = this.#options
    const { budgets } = policy()
    if (budgets.length === 0) return []
    // Most namespaces are far below every budget: those need no search for theirs.
    const eventsMin = Math.min(...budgets.map(({ events = Number.POSITIVE_INFINITY }) => events))
    const bytesMin = Math.min(...budgets.map(({ bytes = Number.POSITIVE_INFINITY }) => bytes))
    const found: Exceeded[] = []
    let compared = 0
    // Copied: the counts change while this yields.
    for (const size of [...(sizes.all() ?? [])]) {
      if (++compared % comparedPerSlice === 0) await yieldToEventLoop()
      if (size.events <= eventsMin && size.bytes <= bytesMin) continue
      const budget = policy().budgetOf(size.cluster, size.namespace)
      if (budget !== undefined && excessOf(size, budget) !== undefined) found.push({ size, budget })
    }
    const clustersLast = ({ size }: Exceeded) => (size.namespace === undefined ? 1 : 0)
    return found.sort((one, other) => clustersLast(one) - clustersLast(other))
  }

  async #evictBatch({ size, budget }: Exceeded, signal: AbortSignal): Promise<number> {
    const { sizes } = this.#options
    const { cluster, namespace } = size
    for (const selector of [others, warnings]) {
      const oldest = await this.#oldest({ cluster, namespace }, selector, signal)
      if (oldest.length === 0) continue
      // After the list: it includes everything that was deleted before.
      const now = sizes.of(cluster, namespace)
      const excess = now && excessOf(now, budget)
      return excess === undefined ? 0 : this.#evict(victimsOf(oldest, excess), budget)
    }
    return 0
  }

  async #oldest(
    scope: { readonly cluster: string; readonly namespace: string | undefined },
    selector: EventSelector,
    signal: AbortSignal,
  ): Promise<readonly StoredEvent[]> {
    const { storage } = this.#options
    const { items } = await storage.list(scope, {
      order: 'oldest',
      selector,
      limit: batchMax,
      // A kept state would make every delete that follows copy parts of the indexes.
      isOnlyPage: true,
      signal,
    })
    return items
  }

  async #evict(victims: readonly StoredEvent[], budget: RetentionBudget): Promise<number> {
    const deletes: Promise<boolean>[] = []
    for (let at = 0; at < victims.length; at += deletesPerSlice) {
      if (at > 0) await yieldToEventLoop()
      for (const victim of victims.slice(at, at + deletesPerSlice)) {
        deletes.push(this.#delete(victim, budget))
      }
    }
    // All of them end before the first failure is reported, and before the next batch is chosen.
    const results = await Promise.allSettled(deletes)
    for (const result of results) if (result.status === 'rejected') throw result.reason
    return results.filter((result) => result.status === 'fulfilled' && result.value).length
  }

  async #delete(victim: StoredEvent, budget: RetentionBudget): Promise<boolean> {
    const { storage, isVerified, onEvicted, policy } = this.#options
    const { cluster, namespace } = victim.key
    const isWanted = () =>
      policy().budgetOf(cluster, budget.per === 'Cluster' ? undefined : namespace) === budget
    const outcome = await deleteUnchanged(victim, { storage, isVerified, isWanted })
    if (outcome === 'gone' || 'changed' in outcome) return false
    if ('failed' in outcome) {
      if (isRetryable(outcome.failed)) throw outcome.failed
      return false
    }
    onEvicted(outcome.deleted, budget)
    return true
  }
}

/** Undefined when it is within the budget. */
function excessOf({ events, bytes }: StoredSize, budget: RetentionBudget): Excess | undefined {
  const excess = {
    events: events - (budget.events ?? Number.POSITIVE_INFINITY),
    bytes: bytes - (budget.bytes ?? Number.POSITIVE_INFINITY),
  }
  return excess.events > 0 || excess.bytes > 0 ? excess : undefined
}

/** The first of them that are as much as the excess. */
function victimsOf(oldest: readonly StoredEvent[], excess: Excess): readonly StoredEvent[] {
  let bytes = 0
  let count = 0
  for (const { body } of oldest) {
    if (count >= excess.events && bytes >= excess.bytes) break
    bytes += body.length
    count++
  }
  return oldest.slice(0, count)
}
