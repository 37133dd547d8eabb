/**
 * Retention as seen from etcd: when events expire, what is compacted and when, and who is allowed
 * to do both.
 */
import type { Change, Commit, Compare } from '../checker/commit.ts'
import { type ChangeRecord, describe } from '../checker/lineage.ts'
import type { Reporter } from '../checker/reporter.ts'
import type { Truth, TruthListener } from '../checker/truth.ts'
import type { ClientWorld } from '../workload/contract.ts'
import { BudgetChecks } from './budget-checks.ts'
import { lifetimeIn, type PlannedPolicy } from './policy-plan.ts'

/** etcd's number for a compare of the mod revision. */
const modRevision = 2

/** Timestamps in the age record are whole milliseconds. */
const roundingMs = 2

/** src/retention/retention.ts: the timeline takes 20 notes per lifetime or interval. */
const notesPerPeriod = 20
const noteEveryMs = { least: 250, most: 10_000 }
/** src/retention/timeline.ts: a thinned timeline has gaps of this share of the age. */
const gapShare = 1 / 256

/**
 * How long after a fault the sweeper may take to work again, beyond the recovery of replicas: the
 * lease of a dead leader expires (5 s), another replica notices that at the latest after the same
 * time again and after a backoff (2 s), reads the age record (5 s) and lists all events.
 */
const takeOverMs = 20_000

/**
 * A sweep begins each second; a failed one is repeated after at most 4 s; deletes take at most some
 * hundred milliseconds each batch.
 */
const sweepMs = 10_000

/** A delete is committed at most this long after it was decided; see budget-checks.ts. */
const decidedMs = { calm: 3_000, storm: 90_000 }

export class RetentionChecks implements TruthListener {
  readonly budgets: BudgetChecks
  readonly #world: ClientWorld
  readonly #truth: Truth
  readonly #reporter: Reporter
  readonly #recoveryMs: number
  /** The leader's key: who holds it, with which mod revision. */
  #leader:
    | { readonly replica: string; readonly lease: bigint; readonly revision: number }
    | undefined
  #isRestoring = false

  constructor(options: {
    readonly world: ClientWorld
    readonly truth: Truth
    readonly reporter: Reporter
    readonly recoveryMs: number
  }) {
    this.#world = options.world
    this.#truth = options.truth
    this.#reporter = options.reporter
    this.#recoveryMs = options.recoveryMs
    this.budgets = new BudgetChecks(options)
    this.#truth.listen(this)
  }

  /**
   * Whether an event may have expired at this time, by a policy that was in force when the delete was
   * decided. A lifetime is measured by monotonic clocks of replicas, which may run fast by the drift,
   * and by etcd's leases, which measure true time and are rounded down. Wall clocks do not matter.
   */
  isDue(state: ChangeRecord, at: number): boolean {
    const { policies, limits, calmSince } = this.#world
    const isCalm = calmSince !== undefined && at > calmSince + this.#recoveryMs
    const wakeMs = isCalm ? decidedMs.calm : decidedMs.storm
    return policies.possible(wakeMs).some((policy) => {
      const lifetime = lifetimeIn(policy, state)
      if (lifetime === 'never') return false
      return at - state.at >= lifetime / (1 + limits.driftMax) - roundingMs
    })
  }

  mayBeEviction(record: ChangeRecord): boolean {
    return this.budgets.mayBeEviction(record)
  }

  judge(record: ChangeRecord, before: ChangeRecord): void {
    this.budgets.judge(record, before)
  }

  /** How much later than a note proves an event may have been written. */
  get #noteGapMs(): number {
    const { compactionIntervalMs, driftMax } = this.#world.limits
    const { newest, previous } = this.#world.policies
    const all = [...lifetimesIn(newest), ...lifetimesIn(previous)]
    // Notes of the policy before may be as far apart as its shortest lifetime required.
    const shortest = Math.max(...[newest, previous].map((one) => Math.min(...lifetimesIn(one))))
    const period = Math.min(shortest, compactionIntervalMs || shortest)
    const every = Math.min(noteEveryMs.most, Math.max(noteEveryMs.least, period / notesPerPeriod))
    // A note that fails is replaced by the next one.
    return 2 * every * (1 + driftMax) + 2 * Math.max(0, ...all) * gapShare
  }

  /**
   * In a calm world no event with this lifetime lives longer than this after its last write. The age
   * of an event that is older than the last fault may have to be proved again from nothing, in the
   * worst case: then it counts from the end of the recovery.
   */
  ageMsMax(lifetimeMs: number): number {
    return lifetimeMs * (1 + 2 * this.#world.limits.driftMax) + this.#lateMs
  }

  /** How long a due event may stay; also after a new policy has made it due. */
  get #lateMs(): number {
    return this.#noteGapMs + takeOverMs + sweepMs
  }

  /**
   * A leader compacts what was history one interval ago, at most once per interval: what is
   * compacted is between one and two intervals old.
   */
  get #compactionLateMs(): number {
    return 2 * this.#noteGapMs + takeOverMs + sweepMs
  }

  /** How long the world has to be calm until everything here must have happened. */
  get calmNeededMs(): number {
    const { compactionIntervalMs, driftMax } = this.#world.limits
    const compaction =
      compactionIntervalMs === 0
        ? 0
        : 2 * compactionIntervalMs * (1 + 2 * driftMax) + this.#compactionLateMs
    const longest = Math.max(0, ...lifetimesIn(this.#world.policies.newest))
    return this.#recoveryMs + Math.max(this.ageMsMax(longest), compaction) + 5_000
  }

  onChange(_record: ChangeRecord): void {}

  onOtherKey(change: Change, commit: Commit): void {
    const text = change.key.toString('latin1')
    if (text.endsWith('/control/sweeper')) this.#onLeader(change, commit)
    else if (text.endsWith('/control/ages') || text.endsWith('/control/compaction')) {
      this.#onLeadersWork(change, commit)
    }
  }

  /** The leader's key is created, and deleted with its lease; it is never taken over. */
  #onLeader(change: Change, commit: Commit): void {
    if (change.type === 'delete') {
      this.#leader = undefined
      return
    }
    const replica = /^\S*/.exec(change.value.toString('latin1'))?.[0] ?? ''
    const { lease } = change
    if (this.#leader !== undefined && this.#leader.lease !== 0n) {
      this.#reporter.report(
        'one leader at a time',
        `revision ${commit.revision} makes ${replica} the leader while ${this.#leader.replica} holds the key`,
        [
          `since revision ${this.#leader.revision}, lease ${this.#leader.lease}; now lease ${lease}`,
        ],
      )
    }
    if (lease === 0n) {
      this.#reporter.report('one leader at a time', `${replica} leads without a lease`)
    }
    this.#leader = { replica, lease, revision: commit.revision }
  }

  /** The age record and the announcement of a compaction are written by the leader only. */
  #onLeadersWork(change: Change, commit: Commit): void {
    if (change.type === 'delete') return
    const replica = /"replica":"([^"]*)"/.exec(change.value.toString('latin1'))?.[1]
    if (this.#leader !== undefined && this.#leader.replica === replica) return
    if (this.#leader === undefined && requiresNoLeader(commit)) return
    this.#reporter.report(
      'only the leader works',
      `revision ${commit.revision}: ${replica} wrote ${change.key.toString('latin1')}, but the leader is ${this.#leader?.replica ?? 'nobody'}`,
      [change.value.toString('latin1').slice(0, 300)],
    )
  }

  /** Called before the truth knows the new state. */
  restoring(): void {
    this.#isRestoring = true
    this.#leader = undefined
  }

  /** The leader's key in the restored state. */
  restored(leader: (Change & { readonly modRevision: number }) | undefined): void {
    this.#isRestoring = false
    if (leader === undefined) return
    const replica = /^\S*/.exec(leader.value.toString('latin1'))?.[0] ?? ''
    this.#leader = { replica, lease: leader.lease, revision: leader.modRevision }
  }

  onCompact(revision: number, at: number): void {
    if (this.#isRestoring) return
    const { compactionIntervalMs, driftMax } = this.#world.limits
    const writtenAt = this.#truth.committedAt(revision)
    if (writtenAt === undefined || compactionIntervalMs === 0) return
    const ageMs = at - writtenAt
    if (ageMs >= compactionIntervalMs / (1 + driftMax) - roundingMs) return
    this.#reporter.report(
      'history is kept for the compaction interval',
      `revision ${revision} was compacted ${ageMs.toFixed(0)} ms after it was committed, the interval is ${compactionIntervalMs} ms`,
    )
  }

  /** Looks for events and history that should be gone. To be called now and then. */
  check(now: number, calmSince: number | undefined): void {
    if (calmSince === undefined) return
    const begin = calmSince + this.#recoveryMs
    this.#checkExpiry(now, begin)
    this.#checkCompaction(now, begin)
    this.budgets.check(now, begin)
  }

  #checkExpiry(now: number, begin: number): void {
    const { newest, sureSince } = this.#world.policies
    if (sureSince === undefined || sureSince > now - this.#lateMs) return
    for (const { head } of this.#truth.current.keys) {
      const lifetime = head.isDelete ? 'never' : lifetimeIn(newest, head)
      if (lifetime === 'never') continue
      const ageMsMax = this.ageMsMax(lifetime)
      if (Math.max(begin, head.at) > now - ageMsMax) continue
      this.#reporter.report(
        'due events expire',
        `an event was written ${(now - head.at).toFixed(0)} ms ago and still exists; at most ${ageMsMax.toFixed(0)} ms are allowed in a calm world`,
        [
          describe(head),
          `calm, and recovered, since ${begin.toFixed(0)} ms; now ${now.toFixed(0)} ms`,
        ],
      )
      return
    }
  }

  #checkCompaction(now: number, begin: number): void {
    const { compactionIntervalMs, driftMax } = this.#world.limits
    if (compactionIntervalMs === 0) return
    const intervalMs = compactionIntervalMs * (1 + 2 * driftMax)
    // The last compaction was at most an interval ago, of what was an interval old then. The age of
    // what was written before the recovery may not be proved.
    const time = now - 2 * intervalMs - this.#compactionLateMs
    if (time < begin) return
    const revision = this.#truth.revisionAt(time)
    if (revision === undefined || this.#truth.compacted >= revision) return
    this.#reporter.report(
      'history is compacted',
      `etcd is compacted to revision ${this.#truth.compacted}, but revision ${revision} was the newest at ${time.toFixed(0)} ms; now is ${now.toFixed(0)} ms, the interval is ${compactionIntervalMs} ms`,
    )
  }
}

/**
 * While etcd is full no leader can be elected, and replicas work without one. Such a write fails for
 * want of space; when there is space again, it succeeds if nobody leads.
 */
function requiresNoLeader({ command }: Commit): boolean {
  const isNoLeader = ({ key, target, number }: Compare): boolean =>
    key.endsWith('/control/sweeper') && target === modRevision && number === 0
  return command?.compares?.some(isNoLeader) === true
}

/** The lifetimes of events that expire. */
function lifetimesIn({ rules, lifetime }: PlannedPolicy): readonly number[] {
  const all = [lifetime, ...rules.map((rule) => rule.lifetime)]
  return all.filter((ms) => ms !== 'never')
}
