/**
 * Tracks how full etcd is, and whether it has exceeded its space quota and raised the NOSPACE
 * alarm. It then accepts no puts and no leases; reads, watches, deletes and compactions continue.
 *
 * etcd returns the same error for a put that it refused and for a put that it applied and that
 * exceeded the quota: a member checks the quota before it proposes, and again when it applies what
 * other members proposed meanwhile, and the second check comes too late to undo anything. So the
 * result of such a put is unknown. That error, however, shows that the alarm is on: from then on
 * puts are not sent, and their clients get an error that says for certain: nothing was written.
 */
import type { MemberStatus } from '../../etcd/client.ts'
import { repeat } from '../../lib/abort.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { StorageError } from '../errors.ts'

/** How often members are polled. Between polls, limited writers use a small part of any quota. */
const pollIntervalMs = 1_000
const reportTimeoutMs = 2_000
const retryAfterMs = 1_000
/** Limits the log lines when the alarm is disarmed repeatedly without freeing space. */
const logIntervalMs = 60_000

/** Clients may see this text. */
export const fullReason = 'etcd is full (its space quota is exceeded)'

/**
 * The used fraction of the quota from which write rates are reduced, and from which writes are
 * rejected. The rest is for writers without rate limits, and for database pages that etcd cannot
 * reuse at once.
 */
const reduceFrom = 0.5
const rejectFrom = 0.8

/** How much the write rate limits are reduced, from the best to the worst. */
const REDUCTIONS = ['none', 'some', 'all'] as const
type Reduction = (typeof REDUCTIONS)[number]

/** The disk usage that members report. */
export interface SpaceReport {
  readonly hasAlarm: boolean
  /** The size of the database without free pages. */
  readonly bytesInUse: number
  /** Undefined if it is not known. */
  readonly quotaBytes: number | 'none' | undefined
}

export interface QuotaAlarmOptions {
  /** Undefined when no member responded. Never rejects. */
  readReport(timeoutMs: number): Promise<SpaceReport | undefined>
  /** Instead of the quota that members report. */
  readonly quotaBytes?: number | undefined
  readonly log: Log
  readonly clock?: Clock | undefined
}

export class QuotaAlarm {
  readonly #options: QuotaAlarmOptions
  readonly #clock: Clock
  #fullSince: number | undefined
  #fullLoggedAt = Number.NEGATIVE_INFINITY
  #isFullLogged = false
  /** How often etcd was found full: a report that was requested before the last time is stale. */
  #fullCount = 0
  #isPolling = false
  /** The last logged reduction, and when it was logged. */
  #reduction: Reduction = 'none'
  #reductionLoggedAt = Number.NEGATIVE_INFINITY
  /** The last report, and the bytes that this replica has written since it was requested. */
  #bytesInUse: number | undefined
  #bytesWritten = 0
  /** Undefined while it is unknown, and if there is none. */
  #quotaBytes: number | undefined

  constructor(options: QuotaAlarmOptions) {
    this.#options = options
    this.#quotaBytes = options.quotaBytes
    this.#clock = options.clock ?? monotonicClock
  }

  /** Polls until aborted. */
  watch(signal: AbortSignal): void {
    repeat(pollIntervalMs, () => this.#pollIfIdle(), signal)
  }

  /** The used fraction of the quota; undefined while it is unknown, and without a quota. */
  get usedFraction(): number | undefined {
    if (this.#bytesInUse === undefined || this.#quotaBytes === undefined) return undefined
    return (this.#bytesInUse + this.#bytesWritten) / this.#quotaBytes
  }

  /**
   * The fraction of their rate limits that writers may use: from 1, all, down to 0, nothing. It is
   * 1 when etcd is full: then `refusal` rejects puts.
   */
  get writeFraction(): number {
    if (this.usedFraction === undefined || this.isFull) return 1
    return Math.min(1, Math.max(0, (rejectFrom - this.usedFraction) / (rejectFrom - reduceFrom)))
  }

  /** The bytes in use, and the bytes at which writes are rejected; undefined as `usedFraction` is. */
  get space(): { readonly usedBytes: number; readonly budgetBytes: number } | undefined {
    if (this.#bytesInUse === undefined || this.#quotaBytes === undefined) return undefined
    const usedBytes = this.#bytesInUse + this.#bytesWritten
    return { usedBytes, budgetBytes: this.#quotaBytes * rejectFrom }
  }

  get isFull(): boolean {
    return this.#fullSince !== undefined
  }

  /** The error for puts that are not sent; undefined while etcd accepts puts. */
  refusal(): StorageError | undefined {
    if (!this.isFull) return undefined
    const reason = `${fullReason} and accepts only deletes`
    return new StorageError({ kind: 'unavailable', message: reason, reason, retryAfterMs })
  }

  /** To be called when etcd has responded that it is full. */
  readonly onFull = (): void => {
    this.#fullCount++
    if (this.isFull) return
    const now = this.#clock.now()
    this.#fullSince = now
    this.#isFullLogged = now >= this.#fullLoggedAt + logIntervalMs
    if (!this.#isFullLogged) return
    this.#fullLoggedAt = now
    this.#options.log.error(
      'etcd is full: it accepts only reads and deletes until an operator frees space',
      { remedy: 'etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm' },
    )
  }

  /** To be called for applied writes, so that a burst of them counts before the next report. */
  readonly onWritten = (bytes: number): void => {
    this.#bytesWritten += bytes
  }

  #onAlarmOff(): void {
    if (this.#fullSince === undefined) return
    const seconds = Math.round((this.#clock.now() - this.#fullSince) / 100) / 10
    this.#fullSince = undefined
    if (this.#isFullLogged) this.#options.log.info('etcd accepts writes again', { seconds })
  }

  /** Logs each change for the worse, and at most one change for the better per minute. */
  #logReduction(): void {
    const { writeFraction, usedFraction } = this
    if (this.isFull) return
    const reduction = writeFraction === 1 ? 'none' : writeFraction > 0 ? 'some' : 'all'
    const isWorse = REDUCTIONS.indexOf(reduction) > REDUCTIONS.indexOf(this.#reduction)
    const now = this.#clock.now()
    const isTooSoon = now < this.#reductionLoggedAt + logIntervalMs
    if (reduction === this.#reduction || (!isWorse && isTooSoon)) return
    this.#reduction = reduction
    this.#reductionLoggedAt = now
    const fields =
      usedFraction === undefined ? undefined : { usedPercent: Math.round(usedFraction * 100) }
    const { log } = this.#options
    if (reduction === 'none') {
      log.info('etcd has free space again: write rate limits are back to normal', fields)
    } else if (reduction === 'some') {
      log.warn('etcd is filling up: write rate limits are reduced', fields)
    } else {
      log.error('etcd is nearly full: writes of events are rejected until space is freed', fields)
    }
  }

  #pollIfIdle(): void {
    if (!this.#isPolling) void this.#poll()
  }

  async #poll(): Promise<void> {
    const fullCount = this.#fullCount
    const bytesWritten = this.#bytesWritten
    this.#isPolling = true
    const report = await this.#options.readReport(reportTimeoutMs)
    this.#isPolling = false
    if (report === undefined) return
    this.#bytesInUse = report.bytesInUse
    const quotaBytes = this.#options.quotaBytes ?? report.quotaBytes ?? this.#quotaBytes
    this.#quotaBytes = quotaBytes === 'none' ? undefined : quotaBytes
    this.#bytesWritten -= bytesWritten
    this.#logReduction()
    if (report.hasAlarm) this.onFull()
    else if (fullCount === this.#fullCount) this.#onAlarmOff()
  }
}

/**
 * Whether any member has the alarm, the largest database, and the smallest quota: the first full
 * member stops the whole cluster. Undefined without a status.
 */
export function spaceReport(
  statuses: readonly Pick<MemberStatus, 'errors' | 'dbBytesInUse' | 'quotaBytes'>[],
): SpaceReport | undefined {
  if (statuses.length === 0) return undefined
  const quotas = statuses.map(({ quotaBytes }) => quotaBytes).filter((bytes) => bytes > 0)
  const hasNone = statuses.every(({ quotaBytes }) => quotaBytes < 0)
  return {
    hasAlarm: statuses.some(({ errors }) => errors.some((error) => error.includes('NOSPACE'))),
    bytesInUse: Math.max(...statuses.map(({ dbBytesInUse }) => dbBytesInUse)),
    quotaBytes: quotas.length > 0 ? Math.min(...quotas) : hasNone ? 'none' : undefined,
  }
}
