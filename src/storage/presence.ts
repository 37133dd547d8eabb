/**
 * Whether etcd is there: whether it answers what takes a majority of its members.
 *
 * Any read or write that is answered says so; when none was for a moment, a question is put. A
 * member that dies or an election goes by before anybody is turned away. After that etcd is away:
 * what has not been sent is refused, at once and in words that say why, until the first answer to
 * the questions that go on being put.
 */
import { EtcdError, type EtcdErrorKind } from '../etcd/errors.ts'
import type { CallObserver, EndpointStatus } from '../etcd/protocol.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { StorageError } from './errors.ts'

const lookIntervalMs = 500
/**
 * Looks in a row without an answer, after the first: with it some four seconds. An election and the
 * doubts before it take one to three. Counted and not timed, so that a process that was itself
 * stopped does not blame etcd.
 */
const silentLooksMax = 7
/** Longer than it takes to be found away, or an etcd that is merely slow could never come back. */
const questionTimeoutMs = 6_000
const retryAfterMs = 1_000

export interface PresenceOptions {
  /** Puts a small question that takes a majority to answer. */
  ask(timeoutMs: number): Promise<unknown>
  members(): readonly EndpointStatus[]
  readonly log: Log
  readonly clock?: Clock | undefined
}

export class Presence {
  readonly #options: PresenceOptions
  readonly #clock: Clock
  readonly #onAway: (() => void)[] = []
  #ending = new AbortController()
  #isHeard = false
  #silentLooks = 0
  /** Since when nothing has been heard, as far as that is known. */
  #silentSince: number
  #outages = 0

  constructor(options: PresenceOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#silentSince = this.#clock.now()
  }

  /** Looks every now and then until aborted. */
  watch(signal: AbortSignal): void {
    const timer = setInterval(() => this.look(), lookIntervalMs)
    timer.unref()
    signal.addEventListener('abort', () => clearInterval(timer))
  }

  /** Whether anything was heard since the last look; if not, a question is put. */
  look(): void {
    if (this.#isHeard) {
      this.#isHeard = false
      this.#silentLooks = 0
      this.#silentSince = this.#clock.now()
      return
    }
    if (this.#silentLooks++ >= silentLooksMax && !this.isAway) this.#leave()
    void this.#question()
  }

  /** Aborts when etcd is found away. Once it is back there is another one. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  get isAway(): boolean {
    return this.#ending.signal.aborted
  }

  /** For how long it has not answered, if it is away; else 0. */
  get awayMs(): number {
    return this.isAway ? this.#clock.now() - this.#silentSince : 0
  }

  /** How often it was found away. */
  get outages(): number {
    return this.#outages
  }

  /** Calls back each time etcd is found away. */
  onAway(run: () => void): void {
    this.#onAway.push(run)
  }

  /** For what is not even sent while etcd is away; undefined while it is there. */
  refusal(cause?: unknown): StorageError | undefined {
    if (!this.isAway) return undefined
    const reason = this.describe()
    return new StorageError({ kind: 'unavailable', message: reason, reason, retryAfterMs, cause })
  }

  /** What is wrong, naming no machine. */
  describe(): string {
    const seconds = Math.round((this.#clock.now() - this.#silentSince) / 1000)
    return `etcd has not answered for ${seconds} s: ${whatIsWrong(this.#options.members())}`
  }

  /** To be told of every call. Only ranges and transactions are proof of a majority. */
  readonly onCall: CallObserver = ({ path, hasFailed }) => {
    if (!hasFailed && proofs.has(path)) this.#heard()
  }

  #heard(): void {
    this.#isHeard = true
    if (!this.isAway) return
    const seconds = Math.round(this.awayMs / 100) / 10
    this.#ending = new AbortController()
    this.#options.log.info('etcd answers again', { seconds })
  }

  async #question(): Promise<void> {
    try {
      await this.#options.ask(questionTimeoutMs)
    } catch (error) {
      // A refusal is an answer too.
      if (error instanceof EtcdError && !silences.has(error.kind)) this.#heard()
    }
  }

  #leave(): void {
    const { log, members } = this.#options
    const err = members().find(({ lastError }) => lastError !== undefined)?.lastError
    this.#outages++
    log.warn(
      'etcd does not answer; until it does, writes and fresh reads are refused, watches and reads with resourceVersion=0 go on',
      { reason: whatIsWrong(members()), err },
    )
    this.#ending.abort()
    for (const run of this.#onAway) run()
  }
}

const proofs: ReadonlySet<string> = new Set(['/etcdserverpb.KV/Range', '/etcdserverpb.KV/Txn'])
const silences: ReadonlySet<EtcdErrorKind> = new Set(['unavailable', 'timeout', 'cancelled'])

function whatIsWrong(members: readonly EndpointStatus[]): string {
  const reached = members.filter(({ state }) => state === 'ready')
  if (reached.length === 0) {
    return members.length === 1
      ? 'it cannot be reached'
      : `none of its ${members.length} members can be reached`
  }
  if (reached.some(({ lastError }) => lastError?.message === 'etcdserver: no leader')) {
    return 'it has no leader, as too few of its members are up'
  }
  return 'it is connected, but silent'
}
