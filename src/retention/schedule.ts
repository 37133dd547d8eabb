import { formatDuration } from '../lib/go/duration.ts'
import type { RetentionPolicy } from './policy.ts'

/** Notes of the timeline per lifetime or interval: enough that gaps between them hardly matter. */
const notesPerPeriod = 20
const noteEveryMsMin = 250
const noteEveryMsMax = 10_000
/** Ages beyond this many times the longest lifetime are not distinguished, to limit the notes. */
const horizonLifetimes = 2
/**
 * The horizon while some events never expire. A changed policy may give them a lifetime, and they
 * should not appear younger than they are then. A month takes about 2000 notes.
 */
const foreverHorizonMs = 30 * 24 * 3_600_000
/** Writing the age record costs a few kilobytes in etcd. */
const recordEveryMsMin = 1_000

/** What a policy requires of the timeline and of the age record. */
export class Schedule {
  readonly policy: RetentionPolicy
  /** 0 disables compaction. */
  readonly compactionIntervalMs: number

  constructor(policy: RetentionPolicy, compactionIntervalMs: number) {
    this.policy = policy
    this.compactionIntervalMs = compactionIntervalMs
  }

  /** Whether nothing expires, is limited or is compacted, so that no leader is needed. */
  get isIdle(): boolean {
    return this.#periodsMs.length === 0 && this.policy.budgets.length === 0
  }

  get noteEveryMs(): number {
    const everyMs = Math.min(...this.#periodsMs) / notesPerPeriod
    return Math.min(noteEveryMsMax, Math.max(noteEveryMsMin, everyMs))
  }

  get recordEveryMs(): number {
    return Math.max(this.noteEveryMs, recordEveryMsMin)
  }

  /** Ages above this need not be distinguished. */
  get horizonMs(): number {
    const { longestMs, keepsForever } = this.policy
    const longest = Math.max(longestMs, this.compactionIntervalMs) * horizonLifetimes
    return keepsForever ? Math.max(longest, foreverHorizonMs) : longest
  }

  /** The settings as command-line flags. */
  get flags(): string {
    const { defaultLifetime: ttl } = this.policy
    const shown = ttl === 'never' ? ttl : formatDuration(ttl)
    const interval = formatDuration(this.compactionIntervalMs)
    return `--event-ttl=${shown} --etcd-compaction-interval=${interval}`
  }

  get #periodsMs(): readonly number[] {
    const { shortestMs } = this.policy
    return [
      ...(shortestMs === undefined ? [] : [shortestMs]),
      ...(this.compactionIntervalMs === 0 ? [] : [this.compactionIntervalMs]),
    ]
  }
}
