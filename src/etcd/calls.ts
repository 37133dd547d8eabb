/**
 * Unary calls: their deadlines and their retries.
 *
 * A call that gets no response for a second makes its member suspect (members.ts). Nothing else
 * detects a member that accepts requests and does not answer before their deadlines.
 *
 * Reads are hedged: the request is then sent to a second member as well, and the first response
 * counts. A member that is paused or cut off costs a second at most, and a member that is only busy
 * with a large response can still send it.
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
import { firstBackoffMs, maxBackoffMs } from './connection.ts'
import { EtcdError, isRetryable } from './errors.ts'
import type { Member, Members } from './members.ts'
import type { CallObserver, CallOptions, ConnectionNumber } from './protocol/protocol.ts'

/**
 * A member that has not responded after this long becomes suspect, and a read is hedged. At most a
 * third of the call's timeout.
 */
const hedgeAfterMs = 1_000
const hedgeTimeoutDivisor = 3

/** A hedged read and the members it was sent to. */
interface Race<Response> {
  readonly among: readonly Member[]
  readonly tried: Set<Member>
  readonly running: Map<Member, Promise<Outcome<Response>>>
}

export class Calls {
  readonly #members: Members
  readonly #clock: Clock
  readonly #defaultTimeoutMs: number
  readonly #onCall: CallObserver | undefined
  readonly #open = new PlacedSet<CallScope>()
  readonly #closing: AbortSignal

  constructor(options: {
    readonly members: Members
    /** Aborts when the client closes, with the error to report. */
    readonly closing: AbortSignal
    readonly clock: Clock
    readonly defaultTimeoutMs: number
    readonly onCall?: CallObserver | undefined
  }) {
    this.#onCall = options.onCall
    this.#members = options.members
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
    among?: readonly Member[],
  ): Promise<CallResult<Response>> {
    return this.#within(request, options, (scope) =>
      this.#read(request, scope, among ?? this.#members.all),
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
    const backoff = new Backoff({ firstMs: firstBackoffMs, mostMs: maxBackoffMs })
    const refused = new Set<Member>()
    let last: EtcdError | undefined
    while (!scope.isOver && scope.cancelIfSafe?.aborted !== true) {
      this.#checkConnections(connectionMax)
      const member = this.#members.pick('calls', { avoid: refused, connectionMax })
      if (member === undefined && refused.size === 0) {
        await this.#members.changed(scope.signal)
        continue
      }
      if (member === undefined) {
        refused.clear()
        await pause(backoff.next(), scope.signal)
        continue
      }
      const outcome = await this.#writeOnce(request, scope, member)
      if ('response' in outcome) return this.#servedBy(outcome)
      if (outcome.error.mayHaveBeenApplied || !isRetryable(outcome.error)) throw outcome.error
      last = outcome.error
      refused.add(member)
    }
    throw this.#neverSent(scope, last)
  }

  /** A lost connection does not come back: the next one has a higher number. */
  #checkConnections(connectionMax: ConnectionNumber | undefined): void {
    if (connectionMax === undefined) return
    if (this.#members.pick('calls', { connectionMax }) === undefined) throw outdated()
  }

  async #writeOnce<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
    member: Member,
  ): Promise<Outcome<Response>> {
    // Later calls should not wait for this member as well.
    const suspicion = setTimeout(() => member.suspect(), hedgeDelayMs(scope))
    scope.isWriting = true
    const outcome = await attemptCall(request, scope, member, this.#clock)
    scope.isWriting = false
    clearTimeout(suspicion)
    return outcome
  }

  async #read<Response>(
    request: CallRequest<Response>,
    scope: CallScope,
    among: readonly Member[],
  ): Promise<CallResult<Response>> {
    const backoff = new Backoff({ firstMs: firstBackoffMs, mostMs: maxBackoffMs })
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
    const member = this.#members.pick('calls', { avoid: race.tried, among: race.among })
    if (member === undefined) return
    race.tried.add(member)
    race.running.set(member, attemptCall(request, scope, member, this.#clock))
  }

  #won<Response>(race: Race<Response>, outcome: CallResult<Response>): CallResult<Response> {
    // A call to a named member does not change which member is preferred.
    return race.among === this.#members.all ? this.#servedBy(outcome) : outcome
  }

  #servedBy<Response>(outcome: CallResult<Response>): CallResult<Response> {
    outcome.member.trust()
    this.#members.prefer(outcome.member)
    return outcome
  }

  /** All members failed: retry after a backoff. None was connected: wait until one is. */
  async #waitBeforeRetry(race: Race<unknown>, backoff: Backoff, scope: CallScope): Promise<void> {
    if (race.tried.size === 0) {
      await this.#members.changed(scope.signal)
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
    if (first === undefined) for (const member of running.keys()) member.suspect()
    else running.delete(first.member)
    return first
  }

  /** The error of a call that was never sent, or was refused on each attempt. */
  #neverSent(scope: CallScope, last: EtcdError | undefined): EtcdError {
    const end = scope.reason
    if (end.kind === 'cancelled') return end
    if (last !== undefined) return last
    const reasons = this.#members.all.map((member) => member.error())
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

/** A call that was cancelled before it was sent says nothing about etcd. */
function isAboutEtcd(scope: CallScope): boolean {
  return scope.isSent || scope.reason.kind === 'timeout'
}
