/**
 * Tracks whether etcd is available: whether it responds to calls that need a majority of members.
 * Nothing else detects the loss of the majority while there are no requests, or its return.
 *
 * Every successful read or write is a proof of that; when there was none for a moment, a probe is
 * sent. The loss of a member or an election is over before any request is rejected. After that
 * etcd counts as unavailable: calls that have not been sent are rejected at once, with the reason,
 * until one of the probes, which continue, gets a response.
 */
import { EtcdError, type EtcdErrorKind } from '../../etcd/errors.ts'
import type { CallObserver, EndpointStatus } from '../../etcd/protocol/protocol.ts'
import { repeat } from '../../lib/abort.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { StorageError } from '../errors.ts'

const checkIntervalMs = 500
/**
 * Consecutive checks without a response after the first one: together some four seconds. An
 * election and the detection of the failure before it take one to three. Checks are counted and not
 * timed, so that a process that was itself stopped does not declare an outage.
 */
const silentChecksMax = 7
/** Longer than the detection of an outage, or a slow etcd could never become available again. */
const probeTimeoutMs = 6_000
const retryAfterMs = 1_000

export interface EtcdAvailabilityOptions {
  /** Sends a small read that needs a majority of the members. */
  probe(timeoutMs: number): Promise<unknown>
  members(): readonly EndpointStatus[]
  readonly log: Log
  readonly clock?: Clock | undefined
}

export class EtcdAvailability {
  readonly #options: EtcdAvailabilityOptions
  readonly #clock: Clock
  readonly #onOutage: (() => void)[] = []
  #outage = new AbortController()
  /** Whether there was a response since the last check. */
  #hasResponse = false
  #silentChecks = 0
  /** The time of the last check with a response. */
  #silentSince: number
  #outages = 0

  constructor(options: EtcdAvailabilityOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#silentSince = this.#clock.now()
  }

  /** Checks periodically until aborted. */
  watch(signal: AbortSignal): void {
    repeat(checkIntervalMs, () => this.check(), signal)
  }

  /** Sends a probe if there was no response since the last check. */
  check(): void {
    if (this.#hasResponse) {
      this.#hasResponse = false
      this.#silentChecks = 0
      this.#silentSince = this.#clock.now()
      return
    }
    if (this.#silentChecks++ >= silentChecksMax && !this.isUnavailable) this.#beginOutage()
    void this.#probe()
  }

  /** Aborts when an outage begins. After the outage there is a new signal. */
  get outageSignal(): AbortSignal {
    return this.#outage.signal
  }

  get isUnavailable(): boolean {
    return this.#outage.signal.aborted
  }

  /** How long etcd has not responded; 0 unless there is an outage. */
  get outageMs(): number {
    return this.isUnavailable ? this.#clock.now() - this.#silentSince : 0
  }

  /** The number of outages so far. */
  get outages(): number {
    return this.#outages
  }

  /** Registers a callback for the beginning of each outage. */
  onOutage(run: () => void): void {
    this.#onOutage.push(run)
  }

  /** The error for calls that are not sent during an outage; undefined while etcd is available. */
  refusal(cause?: unknown): StorageError | undefined {
    if (!this.isUnavailable) return undefined
    const reason = this.describe()
    return new StorageError({ kind: 'unavailable', message: reason, reason, retryAfterMs, cause })
  }

  /** Describes the outage to clients, so without host names. */
  describe(): string {
    const seconds = Math.round((this.#clock.now() - this.#silentSince) / 1000)
    return `etcd has not responded for ${seconds} s: ${causeOfOutage(this.#options.members())}`
  }

  /** To be called for every call. Only ranges and transactions prove a majority. */
  readonly onCall: CallObserver = ({ path, hasFailed }) => {
    if (!hasFailed && majorityCalls.has(path)) this.#onResponse()
  }

  #onResponse(): void {
    this.#hasResponse = true
    if (!this.isUnavailable) return
    const seconds = Math.round(this.outageMs / 100) / 10
    this.#outage = new AbortController()
    this.#options.log.info('etcd responds again', { seconds })
  }

  async #probe(): Promise<void> {
    try {
      await this.#options.probe(probeTimeoutMs)
    } catch (error) {
      // A refusal is a response too.
      if (error instanceof EtcdError && !noResponseKinds.has(error.kind)) this.#onResponse()
    }
  }

  #beginOutage(): void {
    const { log, members } = this.#options
    const err = members().find(({ lastError }) => lastError !== undefined)?.lastError
    this.#outages++
    log.warn(
      'etcd does not respond: writes and consistent reads are rejected until it does; watches and reads with resourceVersion=0 continue',
      { reason: causeOfOutage(members()), err },
    )
    this.#outage.abort()
    for (const run of this.#onOutage) run()
  }
}

const majorityCalls: ReadonlySet<string> = new Set([
  '/etcdserverpb.KV/Range',
  '/etcdserverpb.KV/Txn',
])
const noResponseKinds: ReadonlySet<EtcdErrorKind> = new Set(['unavailable', 'timeout', 'cancelled'])

function causeOfOutage(members: readonly EndpointStatus[]): string {
  const reached = members.filter(({ state }) => state === 'ready')
  if (reached.length === 0) {
    return members.length === 1
      ? 'it cannot be reached'
      : `none of its ${members.length} members can be reached`
  }
  if (reached.some(({ lastError }) => lastError?.message === 'etcdserver: no leader')) {
    return 'it has no leader: too few of its members are up'
  }
  return 'it is connected but does not respond'
}
