/**
 * How full etcd is, and whether it is over its quota, with its alarm for that on. It then takes no
 * puts and no leases; reads, watches, deletes and compactions go on.
 *
 * etcd answers the same words to a put that it refused and to one that it made and that took it over
 * its quota: a member checks the quota before it proposes, and once more when it applies what was
 * proposed meanwhile by others, and the second check comes too late to undo anything. So a put that
 * is answered so stays in doubt. By that answer, though, the alarm is on: from then on puts are not
 * sent, and those who wanted them can be told for certain that nothing was done.
 */
import type { EtcdClient } from '../etcd/client.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { StorageError } from './errors.ts'

/** How often members are asked. What a writer within its limits writes meanwhile is a small part of any quota. */
const lookIntervalMs = 1_000
const questionTimeoutMs = 2_000
const retryAfterMs = 1_000
/** An etcd whose alarm is disarmed again and again without making room is told of this often. */
const tellEveryMs = 60_000

/** In words that clients may read. */
export const fullReason = 'etcd is full (its space quota is exceeded)'

/**
 * The part of the quota that may be in use before writers are slowed down, and from which on they
 * are stopped. The rest is for what those write who are not limited, and for pages that etcd cannot
 * use again at once.
 */
const slowFrom = 0.5
const stopFrom = 0.8

/** How much of what they could write writers may not. */
const SHORTAGES = ['none', 'some', 'all'] as const
type Shortage = (typeof SHORTAGES)[number]

/** What members tell. */
export interface SpaceReport {
  readonly hasAlarm: boolean
  /** Of the database, without pages that are free for use. */
  readonly bytesInUse: number
}

export interface SpaceOptions {
  /** Undefined when nobody could say. Never rejects. */
  ask(timeoutMs: number): Promise<SpaceReport | undefined>
  readonly log: Log
  readonly clock?: Clock | undefined
}

export class Space {
  readonly #options: SpaceOptions
  readonly #clock: Clock
  #fullSince: number | undefined
  #toldAt = Number.NEGATIVE_INFINITY
  #isTold = false
  /** How often etcd was found full: an answer to a question from before that is out of date. */
  #findings = 0
  #isAsking = false
  /** As last told, and when. */
  #shortage: Shortage = 'none'
  #shortAt = Number.NEGATIVE_INFINITY
  /** As last reported, and what this replica has written since that was asked for. */
  #bytesInUse: number | undefined
  #bytesWritten = 0
  /** Of etcd's quota; undefined while it is not known. */
  quotaBytes: number | undefined

  constructor(options: SpaceOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
  }

  /** Looks until aborted. */
  watch(signal: AbortSignal): void {
    const timer = setInterval(() => this.#look(), lookIntervalMs)
    timer.unref()
    signal.addEventListener('abort', () => clearInterval(timer))
  }

  /** The part of the quota that is in use; undefined while that is not known. */
  get usedPart(): number | undefined {
    if (this.#bytesInUse === undefined || this.quotaBytes === undefined) return undefined
    return (this.#bytesInUse + this.#bytesWritten) / this.quotaBytes
  }

  /**
   * How much of their allowance writers may use: from 1, all of it, down to 0, nothing. Once etcd is
   * full they are refused for that.
   */
  get room(): number {
    if (this.usedPart === undefined || this.isFull) return 1
    return Math.min(1, Math.max(0, (stopFrom - this.usedPart) / (stopFrom - slowFrom)))
  }

  get isFull(): boolean {
    return this.#fullSince !== undefined
  }

  /** For puts that are not even sent; undefined while there is room. */
  refusal(): StorageError | undefined {
    if (!this.isFull) return undefined
    const reason = `${fullReason} and takes deletes only`
    return new StorageError({ kind: 'unavailable', message: reason, reason, retryAfterMs })
  }

  /** To be told when etcd has answered that it is full. */
  readonly onFull = (): void => {
    this.#findings++
    if (this.isFull) return
    const now = this.#clock.now()
    this.#fullSince = now
    this.#isTold = now >= this.#toldAt + tellEveryMs
    if (!this.#isTold) return
    this.#toldAt = now
    this.#options.log.error(
      'etcd is full: it takes reads and deletes only, until an operator makes room',
      { remedy: 'etcdctl compact, then etcdctl defrag, then etcdctl alarm disarm' },
    )
  }

  /** To be told of what etcd has taken, so that much of it is noticed before the next report. */
  readonly onWritten = (bytes: number): void => {
    this.#bytesWritten += bytes
  }

  #onRoom(): void {
    if (this.#fullSince === undefined) return
    const seconds = Math.round((this.#clock.now() - this.#fullSince) / 100) / 10
    this.#fullSince = undefined
    if (this.#isTold) this.#options.log.info('etcd takes writes again', { seconds })
  }

  /** A line for each change to the worse, and no more than one a minute for changes to the better. */
  #tellOfRoom(): void {
    const { room, usedPart } = this
    if (usedPart === undefined || this.isFull) return
    const shortage = room === 1 ? 'none' : room > 0 ? 'some' : 'all'
    const isWorse = SHORTAGES.indexOf(shortage) > SHORTAGES.indexOf(this.#shortage)
    const now = this.#clock.now()
    if (shortage === this.#shortage || (!isWorse && now < this.#shortAt + tellEveryMs)) return
    this.#shortage = shortage
    this.#shortAt = now
    const fields = { usedPercent: Math.round(usedPart * 100) }
    const { log } = this.#options
    if (shortage === 'none') log.info('etcd has room again: writers may write as before', fields)
    else if (shortage === 'some') log.warn('etcd is filling up: writers may write less', fields)
    else log.error('etcd is nearly full: no event is written until there is room', fields)
  }

  #look(): void {
    if (!this.#isAsking) void this.#question()
  }

  async #question(): Promise<void> {
    const findings = this.#findings
    const bytesWritten = this.#bytesWritten
    this.#isAsking = true
    const report = await this.#options.ask(questionTimeoutMs)
    this.#isAsking = false
    if (report === undefined) return
    this.#bytesInUse = report.bytesInUse
    this.#bytesWritten -= bytesWritten
    this.#tellOfRoom()
    if (report.hasAlarm) this.onFull()
    else if (findings === this.#findings) this.#onRoom()
  }
}

/**
 * Whether a member knows of the alarm, and how much the fullest stores, of those that can be asked.
 * Costs etcd nothing: a member tells what it knows. One that lags may not have been told, hence all.
 */
export async function reportSpace(
  client: Pick<EtcdClient, 'endpoints' | 'status'>,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<SpaceReport | undefined> {
  const members = client.endpoints().filter(({ state }) => state === 'ready')
  const answers = await Promise.allSettled(
    members.map(({ endpoint }) => client.status(endpoint, options)),
  )
  const told = answers.filter((answer) => answer.status === 'fulfilled')
  if (told.length === 0) return undefined
  return {
    hasAlarm: told.some(({ value }) => value.errors.some((error) => error.includes('NOSPACE'))),
    bytesInUse: Math.max(...told.map(({ value }) => value.dbBytesInUse)),
  }
}
