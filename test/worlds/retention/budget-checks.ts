/**
 * Budgets as seen from etcd: an event is evicted only while its namespace or cluster has more than
 * its budget, in its namespace others before Warnings and the oldest first; and in a calm world
 * budgets hold.
 */
import type { ChangeRecord } from '../checker/lineage.ts'
import { describe } from '../checker/lineage.ts'
import type { Reporter } from '../checker/reporter.ts'
import type { Truth, TruthListener } from '../checker/truth.ts'
import type { ClientWorld } from '../workload/contract.ts'
import { budgetIn, facetsIn, type PlannedBudget } from './policy-plan.ts'

/**
 * A delete is committed at most this long after it was decided: in a calm world a batch takes some
 * hundred milliseconds; in a storm it may be held up by slow links and paused processes.
 */
const decidedMs = { calm: 3_000, storm: 90_000 }
/** Budgets are compared five times a second, and a failed attempt is repeated after at most 4 s. */
const enforcedMs = 10_000
/** Other deletes while a batch is under way: then it was a little too large. */
const concurrentMax = 8

/** Undefined: the whole cluster. */
type Scope = string | undefined

interface Size {
  events: number
  bytes: number
  /** When it last had more than a budget that may have been in force. */
  lastAboveAt: number
  /** The time since which it has had more than the newest budget without a break. */
  aboveSince: number | undefined
}

interface BudgetCheckOptions {
  readonly world: ClientWorld
  readonly truth: Truth
  readonly reporter: Reporter
  readonly recoveryMs: number
}

/** Must listen to the truth after the checks that ask it about deletes. */
export class BudgetChecks implements TruthListener {
  readonly #options: BudgetCheckOptions
  readonly #sizes = new Map<Scope, Size>()
  #epoch = 0

  constructor(options: BudgetCheckOptions) {
    this.#options = options
  }

  onOtherKey(): void {}

  onChange(record: ChangeRecord): void {
    this.#followRestore()
    this.#note(record.namespace, record.at)
    const { before } = record
    for (const size of [this.#size(record.namespace), this.#size(undefined)]) {
      if (before !== undefined && !before.isDelete) {
        size.events--
        size.bytes -= before.body.length
      }
      if (!record.isDelete) {
        size.events++
        size.bytes += record.body.length
      }
    }
    this.#note(record.namespace, record.at)
  }

  /** Returns whether a delete may be an eviction. Called before `onChange`. */
  mayBeEviction(record: ChangeRecord): boolean {
    return this.#exceeded(record).length > 0
  }

  /** Nothing else explains the delete: it must be the right one. */
  judge(record: ChangeRecord, before: ChangeRecord): void {
    const exceeded = this.#exceeded(record)
    this.#checkWarning(before, record.at - this.#decidedMs)
    if (this.#isCalm) this.#checkOldest(before, exceeded, record.at)
  }

  /** The scopes whose budgets explain the delete. */
  #exceeded(record: ChangeRecord): readonly Scope[] {
    this.#followRestore()
    this.#note(record.namespace, record.at)
    const sinceMs = record.at - this.#decidedMs
    return [record.namespace, undefined].filter((scope) => {
      const size = this.#size(scope)
      return size.lastAboveAt >= sinceMs && (!this.#isCalm || this.#isNear(size, scope))
    })
  }

  /** Warnings are evicted when nothing else is left in their namespace. */
  #checkWarning(evicted: ChangeRecord, sinceMs: number): void {
    if (!isWarning(evicted)) return
    const other = this.#find(evicted.namespace, (kept) => !isWarning(kept) && kept.at < sinceMs)
    if (other === undefined) return
    this.#options.reporter.report(
      'Warnings are evicted last',
      'a Warning was evicted although there were other events all the time',
      [`evicted: ${describe(evicted)}`, `other: ${describe(other)}`],
    )
  }

  /** A little later, no older event of the same kind is left: the whole batch is deleted then. */
  #checkOldest(evicted: ChangeRecord, scopes: readonly Scope[], at: number): void {
    const { world, reporter } = this.#options
    const { calmSince } = world
    const epoch = this.#epoch
    world.after(decidedMs.calm, () => {
      if (world.calmSince !== calmSince || epoch !== this.#epoch) return
      const older = scopes.map((scope) =>
        this.#find(
          evicted.namespace,
          (kept) =>
            isWarning(kept) === isWarning(evicted) &&
            ageOrder(scope, kept) < ageOrder(scope, evicted) &&
            kept.at < at - decidedMs.calm,
        ),
      )
      if (older.includes(undefined)) return
      reporter.report(
        'the oldest events are evicted first',
        'an event was evicted, and an older one of the same kind was kept',
        [`evicted: ${describe(evicted)}`, `older: ${describe(older[0])}`],
      )
    })
  }

  /** Must be called now and then. */
  check(now: number, begin: number): void {
    const { policies } = this.#options.world
    const since = policies.sureSince
    if (since === undefined) return
    for (const scope of this.#sizes.keys()) if (scope !== undefined) this.#note(scope, now)
    for (const [scope, { aboveSince, events, bytes }] of this.#sizes) {
      const budget = budgetIn(policies.newest, scope)
      if (budget === undefined || aboveSince === undefined || !isAbove({ events, bytes }, budget)) {
        continue
      }
      const aboveMs = now - Math.max(aboveSince, begin, since)
      if (aboveMs < enforcedMs) continue
      this.#options.reporter.report(
        'budgets hold',
        `${scope ?? 'the cluster'} has had more than its budget for ${aboveMs.toFixed(0)} ms of a calm world: ${events} events, ${bytes} bytes`,
        [JSON.stringify(budget)],
      )
    }
  }

  get #isCalm(): boolean {
    const { world, recoveryMs } = this.#options
    return world.calmSince !== undefined && world.now() - world.calmSince > recoveryMs
  }

  get #decidedMs(): number {
    return this.#isCalm ? decidedMs.calm : decidedMs.storm
  }

  #isNear({ events, bytes }: Size, scope: Scope): boolean {
    const meanBytes = bytes / Math.max(1, events)
    const before = {
      events: events + concurrentMax,
      bytes: bytes + concurrentMax * meanBytes,
    }
    return this.#budgets(scope).some((budget) => isAbove(before, budget))
  }

  #budgets(scope: Scope): readonly PlannedBudget[] {
    const { policies } = this.#options.world
    return policies
      .possible(this.#decidedMs)
      .map((policy) => budgetIn(policy, scope))
      .filter((budget) => budget !== undefined)
  }

  #note(namespace: string, at: number): void {
    const { newest } = this.#options.world.policies
    for (const scope of [namespace, undefined]) {
      const size = this.#size(scope)
      if (this.#budgets(scope).some((budget) => isAbove(size, budget))) size.lastAboveAt = at
      const budget = budgetIn(newest, scope)
      if (budget === undefined || !isAbove(size, budget)) size.aboveSince = undefined
      else size.aboveSince ??= at
    }
  }

  #find(namespace: string, matches: (kept: ChangeRecord) => boolean): ChangeRecord | undefined {
    for (const { head } of this.#options.truth.current.keys) {
      if (!head.isDelete && head.namespace === namespace && matches(head)) return head
    }
    return undefined
  }

  /** After a restore, everything is counted again. */
  #followRestore(): void {
    const { current, epoch } = this.#options.truth
    if (epoch === this.#epoch) return
    this.#epoch = epoch
    for (const size of this.#sizes.values()) {
      size.events = 0
      size.bytes = 0
    }
    for (const { head } of current.keys) {
      if (head.isDelete) continue
      for (const size of [this.#size(head.namespace), this.#size(undefined)]) {
        size.events++
        size.bytes += head.body.length
      }
    }
  }

  #size(scope: Scope): Size {
    let size = this.#sizes.get(scope)
    if (size === undefined) {
      size = { events: 0, bytes: 0, lastAboveAt: Number.NEGATIVE_INFINITY, aboveSince: undefined }
      this.#sizes.set(scope, size)
    }
    return size
  }
}

/** For a namespace, oldest means least recently seen; for a cluster, least recently written. */
function ageOrder(scope: Scope, record: ChangeRecord): number {
  return scope === undefined ? record.version : lastSeenOf(record)
}

function isAbove(size: Pick<Size, 'events' | 'bytes'>, budget: PlannedBudget): boolean {
  const { events = Number.POSITIVE_INFINITY, bytes = Number.POSITIVE_INFINITY } = budget
  return size.events > events || size.bytes > bytes
}

function isWarning({ facet }: ChangeRecord): boolean {
  return facetsIn(facet).type === 'Warning'
}

function lastSeenOf({ facet }: ChangeRecord): number {
  return facetsIn(facet).lastSeenMs
}
