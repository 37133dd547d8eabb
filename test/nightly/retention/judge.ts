/**
 * Judges every change that etcd has seen, in its order: each delete must be one of a client, an
 * expiry that was due under a policy in force, or an eviction from a namespace or cluster that had
 * more than its budget.
 */
import { type Facts, lifetimeMs, type PlannedBudget, type PlannedPolicy } from './policies.ts'
import type { Reign } from './reign.ts'

export interface Seen extends Facts {
  readonly bytes: number
  readonly lastSeenMs: number
}

interface Kept extends Seen {
  readonly name: string
  readonly changedAt: number
}

/**
 * The budget of a namespace evicts by the time last seen, that of a cluster by the time of the last
 * write in the largest namespaces.
 */
interface Frontier {
  readonly order: 'lastSeenMs' | 'changedAt'
  readonly youngest: Kept
  readonly at: number
}

interface Size {
  events: number
  bytes: number
}

/** A change is seen a little after it was committed, and the delete of it too. */
const EARLY_MS_MAX = 1_000
const LATE_MS_MAX = 15_000
/** A batch is chosen from the newest state and deleted within this time. */
const BATCH_MS = 2_500
/** What expires, or is deleted by clients, within this time before an eviction may be too much. */
const CONCURRENT_MS = 2_000
/** Events of a batch that was cut short by a kill. */
const LEFT_OVER_MAX = 15
const SHARE = 0.01
/** A run with fewer deletes a minute has tested too little. */
const MIN_PER_MINUTE = { expired: 100, evictedWarnings: 10, evictedOthers: 50 }
const PROBLEMS_MAX = 20

export class Judge {
  readonly problems: string[] = []
  readonly counts = { written: 0, expired: 0, evicted: 0, evictedWarnings: 0, byClients: 0 }
  latestMs = 0
  readonly #reign: Reign
  readonly #kept = new Map<string, Kept>()
  readonly #sizes = new Map<string | undefined, Size>()
  readonly #clientDeletes = new Set<string>()
  readonly #gone: { readonly kept: Kept; readonly at: number }[] = []
  /** The youngest eviction of each namespace by one budget only, for Warnings and others. */
  readonly #frontiers = new Map<string, Frontier>()

  constructor(reign: Reign) {
    this.#reign = reign
  }

  get left(): number {
    return this.#kept.size
  }

  /** Must be called before the request is sent. */
  clientDeletes(name: string): void {
    this.#clientDeletes.add(name)
  }

  put(name: string, seen: Seen): void {
    const before = this.#kept.get(name)
    if (before === undefined) this.counts.written++
    else this.#resize(before, -1)
    const now = { ...seen, name, changedAt: performance.now() }
    this.#kept.set(name, now)
    this.#resize(now, 1)
  }

  deleted(name: string): void {
    const kept = this.#kept.get(name)
    if (kept === undefined) return
    const at = performance.now()
    const isExpired = this.#isExpired(kept, at)
    if (this.#clientDeletes.has(name)) this.counts.byClients++
    else if (isExpired) this.counts.expired++
    else this.#judgeEviction(kept, at)
    if (isExpired) this.#noteLateness(kept, at)
    if (isExpired || this.#clientDeletes.has(name)) this.#gone.push({ kept, at })
    this.#kept.delete(name)
    this.#resize(kept, -1)
  }

  /** Events that should be gone. */
  checkDue(): void {
    const at = performance.now()
    for (const kept of this.#kept.values()) this.#noteLateness(kept, at)
  }

  /** Checks that budgets hold and the oldest were evicted. Writers must have paused before. */
  checkBudgets(): void {
    const { policy } = this.#reign.sure ?? {}
    for (const budget of policy?.budgets ?? []) {
      const { events, bytes } = this.#sizeOf(budget.namespace)
      const limits = {
        events: Number.POSITIVE_INFINITY,
        bytes: Number.POSITIVE_INFINITY,
        ...budget,
      }
      if (events > limits.events * (1 + SHARE) || bytes > limits.bytes * (1 + SHARE)) {
        this.#problem(`budget ${budget.name}: ${events} events, ${bytes} bytes are kept`)
      }
    }
    this.#checkOrder()
  }

  /** Checks that enough was deleted in a run of this length for its result to mean something. */
  checkCounts(minutes: number): void {
    const { expired, evicted, evictedWarnings } = this.counts
    const counted = { expired, evictedWarnings, evictedOthers: evicted - evictedWarnings }
    for (const [what, perMinute] of Object.entries(MIN_PER_MINUTE)) {
      const count = counted[what as keyof typeof counted]
      const least = Math.ceil(perMinute * minutes)
      if (count < least) this.#problem(`too few ${what}: ${count}, expected at least ${least}`)
    }
  }

  #checkOrder(): void {
    for (const [what, { order, youngest, at }] of this.#frontiers) {
      const older = this.#keptIn(youngest.namespace).filter(
        (kept) =>
          isWarning(kept) === isWarning(youngest) &&
          kept[order] < youngest[order] &&
          kept.changedAt < at - BATCH_MS,
      )
      if (older.length > LEFT_OVER_MAX) {
        this.#problem(`${what}: ${older.length} events are older than one that was evicted`)
      }
    }
    this.#frontiers.clear()
  }

  #isExpired(kept: Kept, at: number): boolean {
    return this.#reign.possible(at).some((policy) => {
      const ms = lifetimeMs(policy, kept)
      return ms !== undefined && at - kept.changedAt >= ms - EARLY_MS_MAX
    })
  }

  #noteLateness(kept: Kept, at: number): void {
    const { sure } = this.#reign
    const ms = sure && lifetimeMs(sure.policy, kept)
    if (sure === undefined || ms === undefined) return
    const lateMs = at - Math.max(kept.changedAt + ms, sure.since)
    if (lateMs > LATE_MS_MAX) {
      this.#problem(`${describe(kept)} is ${lateMs.toFixed(0)} ms late, lifetime ${ms} ms`)
    }
    this.latestMs = Math.max(this.latestMs, lateMs)
  }

  #judgeEviction(kept: Kept, at: number): void {
    const policies = this.#reign.possible(at)
    const exceeded = policies.flatMap((policy) => this.#exceededBy(policy, kept))
    if (exceeded.length === 0) {
      const lifetimes = policies.map((policy) => lifetimeMs(policy, kept)).join(' or ')
      const ageMs = (at - kept.changedAt).toFixed(0)
      const sizes = JSON.stringify([this.#sizeOf(kept.namespace), this.#sizeOf(undefined)])
      const budgets = JSON.stringify(policies.map((policy) => policy.budgets))
      this.#problem(
        `${describe(kept)} was deleted after ${ageMs} ms, lifetime ${lifetimes} ms; namespace and cluster ${sizes}, budgets ${budgets}`,
      )
      return
    }
    this.counts.evicted++
    if (isWarning(kept)) {
      this.counts.evictedWarnings++
      if (this.#hasOthers(kept.namespace, at)) {
        this.#problem(`${describe(kept)} was evicted although there are others than Warnings`)
      }
    }
    const [isOfNamespace, ...more] = new Set(
      exceeded.map(({ namespace }) => namespace !== undefined),
    )
    if (isOfNamespace === undefined || more.length > 0) return
    this.#noteFrontier({ order: isOfNamespace ? 'lastSeenMs' : 'changedAt', youngest: kept, at })
  }

  #noteFrontier(frontier: Frontier): void {
    const { order, youngest } = frontier
    const key = `${youngest.namespace}, ${isWarning(youngest) ? 'Warnings' : 'others'} by ${order}`
    const known = this.#frontiers.get(key)?.youngest[order] ?? Number.NEGATIVE_INFINITY
    if (youngest[order] > known) this.#frontiers.set(key, frontier)
  }

  /** The budgets that justify the eviction. */
  #exceededBy({ budgets }: PlannedPolicy, kept: Kept): readonly PlannedBudget[] {
    const scopes = [kept.namespace, undefined]
    const found = scopes.map((scope) => budgets.find(({ namespace }) => namespace === scope))
    return found.filter(
      (budget) => budget !== undefined && this.#isAbove(budget),
    ) as PlannedBudget[]
  }

  #isAbove(budget: PlannedBudget): boolean {
    const { events, bytes } = this.#sizeOf(budget.namespace)
    const { events: eventsMax = Number.POSITIVE_INFINITY } = budget
    const { bytes: bytesMax = Number.POSITIVE_INFINITY } = budget
    const gone = this.#goneFrom(budget.namespace)
    return (
      (events + gone.events) * (1 + SHARE) > eventsMax ||
      (bytes + gone.bytes) * (1 + SHARE) > bytesMax
    )
  }

  /** What was deleted lately, other than by evictions: a batch is chosen before it is deleted. */
  #goneFrom(namespace: string | undefined): Size {
    const since = performance.now() - CONCURRENT_MS
    while ((this.#gone[0]?.at ?? since) < since) this.#gone.shift()
    const gone = { events: 0, bytes: 0 }
    for (const { kept } of this.#gone) {
      if (namespace !== undefined && kept.namespace !== namespace) continue
      gone.events++
      gone.bytes += kept.bytes
    }
    return gone
  }

  #hasOthers(namespace: string, at: number): boolean {
    return this.#keptIn(namespace).some(
      (kept) => !isWarning(kept) && kept.changedAt < at - BATCH_MS,
    )
  }

  #keptIn(namespace: string): readonly Kept[] {
    return [...this.#kept.values()].filter((kept) => kept.namespace === namespace)
  }

  #sizeOf(namespace: string | undefined): Size {
    const known = this.#sizes.get(namespace) ?? { events: 0, bytes: 0 }
    this.#sizes.set(namespace, known)
    return known
  }

  #resize({ namespace, bytes }: Kept, sign: 1 | -1): void {
    for (const size of [this.#sizeOf(namespace), this.#sizeOf(undefined)]) {
      size.events += sign
      size.bytes += sign * bytes
    }
  }

  #problem(what: string): void {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(what)
  }
}

function isWarning({ type }: Facts): boolean {
  return type === 'Warning'
}

function describe({ name, type, reason }: Kept): string {
  return `${name} (${type}, ${reason})`
}
