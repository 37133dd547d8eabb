/**
 * Unary calls: their deadlines and their retries.
 *
 * Reads are hedged: when the first member does not respond for a while, the request is sent to a
 * second member as well, and the first response counts. A member that is paused or cut off costs a
 * second at most, and a member that is only busy with a large response can still send it.
 *
 * A write is sent once. It is retried only when the first attempt certainly had no effect: there
 * was no connection to send it on, or etcd refused it before proposing it.
 *
 * Every call ends at its deadline by our own timer, whatever happens to the connection.
 */
import { AbortListener, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { PlacedSet } from '../lib/placed-set.ts'
import {
  attemptCall,
  type CallRequest,
  type CallResult,
  CallScope,
  type Outcome,
  outdated,
} from './call-attempt.ts'
import type { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError, isRetryable } from './errors.ts'
import { reconnectFirstMs, reconnectMostMs } from './grpc.ts'
import type { CallObserver, CallOptions, ConnectionNumber } from './protocol/protocol.ts'

/**
 * A member that has not responded after this long becomes suspect, and a read is hedged. At most a
 * third of the call's timeout.
 */
const hedgeAfterMs = 1_000
const hedgeTimeoutDivisor = 3

/** A hedged read and the members it was sent to. */
interface Race<Response> {
  readonly among: readonly Endpoint[]
  readonly tried: Set<Endpoint>
  readonly running: Map<Endpoint, Promise<Outcome<Response>>>
}

export class Calls {
  readonly #endpoints: EndpointSet
  readonly #clock: Clock
  readonly #defaultTimeoutMs: number
  readonly #onCall: CallObserver | undefined
  readonly #open = new PlacedSet<CallScope>()
  readonly #closing: AbortSignal

  constructor(options: {
    readonly endpoints: EndpointSet
    /** Aborts when the client closes, with the error to report. */
    readonly closing: AbortSignal
    readonly clock: Clock
    readonly defaultTimeoutMs: number
    readonly onCall?: CallObserver | undefined
  }) {
    this.#onCall = options.onCall
    this.#endpoints = options.endpoints
    this.#closing = options.closing
    new AbortListener(this.#closing, () => {
      for (const scope of this.#open) scope.end(this.#closing.reason)
    })
    this.#clock = options.clock
    this.#defaultTimeoutMs = options.defaultTimeoutMs
  }

  /** Reads from any member, or only from the members in `among`. */
  read<Response>(
    request: CallRequest<Response>,
    options: CallOptions | undefined,
    among?: readonly Endpoint[],
  ): Promise<CallResult<Response>> {
    return this.#within(request, options, (scope) =>
      this.#read(request, scope, among ?? this.#endpoints.all),
    )
  }

  write<Response>(
    request: CallRequest<Response>,
    options: CallOptions | undefined,
  ): Promise<CallResult<Response>> {
    return this.#within(request, options, (scope) => this.#write(request, scope))
  }

  /** How far the most overdue call is past its deadline. Above 0, this process is stuck. */
  overdueMs(): number {
    const now = this.#clock.now()
    let most = 0
    for (const scope of this.#open) most = Math.max(most, now - scope.deadlineAt)
    return most
  }

  /** Runs the call within its deadline and signals, and reports its result to the observer. */
  async #within<Response>(
    { method }: CallRequest<Response>,
    options: CallOptions | undefined,
    run: (scope: CallScope) => Promise<CallResult<Response>>,
  ): Promise<CallResult<Response>> {
    const startedAt = this.#clock.now()
    const scope = new CallScope(options, options?.timeoutMs ?? this.#defaultTimeoutMs, startedAt)
    if (this.#closing.aborted) scope.end(this.#closing.reason)
    this.#open.add(scope)
    let hasFailed = true
    try {
      const result = await run(scope)
      hasFailed = false
      return result
    } finally {
      const isReported = isAboutEtcd(scope)
      this.#open.delete(scope)
      scope.end()
      if (isReported) {
        this.#onCall?.({ path: method.path, ms: this.#clock.now() - startedAt, hasFailed })
      }
    }
  }

  async #write<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
  ): Promise<CallResult<Response>> {
    const { connectionMax } = scope
    const backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
    const refused = new Set<Endpoint>()
    let last: EtcdError | undefined
    while (!scope.isOver && scope.cancelIfSafe?.aborted !== true) {
      this.#checkConnections(connectionMax)
      const endpoint = this.#endpoints.pick('calls', { avoid: refused, connectionMax })
      if (endpoint === undefined && refused.size === 0) {
        await this.#endpoints.changed(scope.signal)
        continue
      }
      if (endpoint === undefined) {
        refused.clear()
        await pause(backoff.next(), scope.signal)
        continue
      }
      const outcome = await this.#writeOnce(request, scope, endpoint)
      if ('response' in outcome) return this.#servedBy(outcome)
      if (outcome.error.maybeApplied || !isRetryable(outcome.error)) throw outcome.error
      last = outcome.error
      refused.add(endpoint)
    }
    throw this.#neverSent(scope, last)
  }

  /** A lost connection does not come back: the next one has a higher number. */
  #checkConnections(connectionMax: ConnectionNumber | undefined): void {
    if (connectionMax === undefined) return
    if (this.#endpoints.pick('calls', { connectionMax }) === undefined) throw outdated()
  }

  async #writeOnce<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
    endpoint: Endpoint,
  ): Promise<Outcome<Response>> {
    // So that later calls do not wait for this member as well.
    const suspicion = setTimeout(() => endpoint.suspect(), hedgeDelayMs(scope))
    scope.isWriting = true
    const outcome = await attemptCall(request, scope, endpoint, this.#clock)
    scope.isWriting = false
    clearTimeout(suspicion)
    return outcome
  }

  async #read<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
    among: readonly Endpoint[],
  ): Promise<CallResult<Response>> {
    const backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
    const race: Race<Response> = { among, tried: new Set(), running: new Map() }
    let last: EtcdError | undefined
    while (!scope.isOver) {
      this.#sendToNextMember(request, scope, race)
      if (race.running.size === 0) {
        await this.#waitBeforeRetry(race, backoff, scope)
        continue
      }
      const outcome = await this.#firstOutcome(race, scope)
      if (outcome === undefined) continue
      if ('response' in outcome) return this.#won(race, outcome)
      if (!isRetryable(outcome.error)) throw outcome.error
      last = outcome.error
    }
    throw this.#neverSent(scope, last)
  }

  #sendToNextMember<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
    race: Race<Response>,
  ): void {
    const endpoint = this.#endpoints.pick('calls', { avoid: race.tried, among: race.among })
    if (endpoint === undefined) return
    race.tried.add(endpoint)
    race.running.set(endpoint, attemptCall(request, scope, endpoint, this.#clock))
  }

  #won<Response>(race: Race<Response>, outcome: CallResult<Response>): CallResult<Response> {
    // The others got the request earlier and have not responded: they are slow.
    for (const silent of race.running.keys()) silent.suspect()
    // A call to a named member does not change which member is preferred.
    return race.among === this.#endpoints.all ? this.#servedBy(outcome) : outcome
  }

  #servedBy<Response>(outcome: CallResult<Response>): CallResult<Response> {
    outcome.endpoint.trust()
    this.#endpoints.prefer(outcome.endpoint)
    return outcome
  }

  /** All members failed: retry after a backoff. None was connected: wait until one is. */
  async #waitBeforeRetry(race: Race<unknown>, backoff: Backoff, scope: CallScope): Promise<void> {
    if (race.tried.size === 0) {
      await this.#endpoints.changed(scope.signal)
      return
    }
    race.tried.clear()
    await pause(backoff.next(), scope.signal)
  }

  /** The first response or failure; undefined when it is time to hedge the read. */
  async #firstOutcome<Response>(
    race: Race<Response>,
    scope: CallScope,
  ): Promise<Outcome<Response> | undefined> {
    const { running } = race
    let timer: NodeJS.Timeout | undefined
    const silence = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), hedgeDelayMs(scope))
    })
    const first = await Promise.race([...running.values(), silence])
    clearTimeout(timer)
    if (first === undefined) for (const endpoint of running.keys()) endpoint.suspect()
    else running.delete(first.endpoint)
    return first
  }

  /** The error of a call that was never sent, or was refused on each attempt. */
  #neverSent(scope: CallScope, last: EtcdError | undefined): EtcdError {
    const end = scope.reason
    if (end.kind === 'cancelled') return end
    if (last !== undefined) return last
    const reasons = this.#endpoints.all.map((endpoint) => endpoint.lastError())
    const reason = reasons.find((error) => error !== undefined)
    return new EtcdError({
      kind: 'unavailable',
      message: `not connected to etcd${reason === undefined ? '' : `: ${reason.message}`}`,
      endpoint: reason?.endpoint,
      cause: reason ?? end,
    })
  }
}

function hedgeDelayMs(scope: CallScope): number {
  return Math.min(hedgeAfterMs, scope.timeoutMs / hedgeTimeoutDivisor)
}

/** Whether the result says something about etcd: not if it was cancelled before it was sent. */
function isAboutEtcd(scope: CallScope): boolean {
  return scope.isSent || scope.reason.kind === 'timeout'
}
