/**
 * Requests with one answer: their deadlines, and what is tried again.
 *
 * A read may be asked of several members. When the first stays silent for a while a second one is
 * asked as well and the first answer counts, so that a member that is paused or cut off costs a
 * second at most, while one that is merely busy with a large answer may still give it.
 *
 * A write is sent once. It is sent again only when it is certain that nothing came of the first
 * time: no connection was there to send it on, or etcd refused before proposing it.
 *
 * Every call ends at its deadline by a timer of ours, whatever becomes of the connection.
 */
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError, isWorthAnotherTry } from './errors.ts'
import { type Method, reconnectFirstMs, reconnectMostMs, startCall } from './grpc.ts'
import type { CallObserver, CallOptions, ConnectionNumber } from './protocol.ts'

/** A member that has not answered after this long is doubted; never more than a third of the time. */
const doubtAfterMs = 1_000
const doubtShare = 3
/** gRPC's own deadline, which etcd is told, comes after ours: ours is the one that decides. */
const deadlineSlackMs = 250

/** One call from its beginning to its end, all its attempts included. */
interface Scope {
  readonly deadlineAt: number
  readonly timeoutMs: number
  /** Aborts at the deadline, by the caller's signal, or when the client closes. */
  readonly signal: AbortSignal
  /** Ends the call as well, unless it is a write that a member has been given. */
  readonly harmlessEnd: AbortSignal | undefined
  /** Over connections up to this one only. */
  readonly connectionMax: ConnectionNumber | undefined
  isWriting: boolean
  /** Whether any member was given it. */
  isSent: boolean
}

interface Request<Answer> {
  readonly method: Method<Answer>
  readonly message: Buffer
}

export interface CallAnswer<Answer> {
  readonly endpoint: Endpoint
  readonly answer: Answer
  /** No older than the one it came over. */
  readonly connection: ConnectionNumber
}

type Outcome<Answer> =
  | CallAnswer<Answer>
  | { readonly endpoint: Endpoint; readonly error: EtcdError }

/** A read, and whom it has been put to. */
interface Race<Answer> {
  readonly among: readonly Endpoint[]
  readonly asked: Set<Endpoint>
  readonly running: Map<Endpoint, Promise<Outcome<Answer>>>
}

/** Made once: without a reason, each call would make an error with a stack trace at its end. */
const OVER = new Error('the call is over')

export class Calls {
  readonly #endpoints: EndpointSet
  readonly #clock: Clock
  readonly #defaultTimeoutMs: number
  readonly #onCall: CallObserver | undefined
  readonly #open = new Set<Scope>()
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
    this.#clock = options.clock
    this.#defaultTimeoutMs = options.defaultTimeoutMs
  }

  /** Asks any member, or one of `among` only. */
  read<Answer>(
    request: Request<Answer>,
    options: CallOptions | undefined,
    among?: readonly Endpoint[],
  ): Promise<CallAnswer<Answer>> {
    return this.#within(request, options, (scope) =>
      this.#read(request, scope, among ?? this.#endpoints.all),
    )
  }

  write<Answer>(
    request: Request<Answer>,
    options: CallOptions | undefined,
  ): Promise<CallAnswer<Answer>> {
    return this.#within(request, options, (scope) => this.#write(request, scope))
  }

  /** How far the most overdue call is past its deadline: anything but 0 means that we are stuck. */
  overdueMs(): number {
    const now = this.#clock.now()
    let most = 0
    for (const scope of this.#open) most = Math.max(most, now - scope.deadlineAt)
    return most
  }

  /** Makes the call within its bounds, and tells the observer how it went. */
  async #within<Answer>(
    { method }: Request<Answer>,
    options: CallOptions | undefined,
    run: (scope: Scope) => Promise<CallAnswer<Answer>>,
  ): Promise<CallAnswer<Answer>> {
    const timeoutMs = options?.timeoutMs ?? this.#defaultTimeoutMs
    const ending = new AbortController()
    const closing = this.#closing
    const caller = options?.signal
    const onClose = () => ending.abort(closing.reason)
    const onCaller = () => ending.abort(gaveUp(caller?.reason))
    const { signal } = ending
    const startedAt = this.#clock.now()
    const scope: Scope = {
      deadlineAt: startedAt + timeoutMs,
      timeoutMs,
      signal,
      harmlessEnd: options?.harmlessEnd,
      connectionMax: options?.connectionMax,
      isWriting: false,
      isSent: false,
    }
    const { harmlessEnd } = scope
    const onHarmlessEnd = () => {
      if (!scope.isWriting) ending.abort(endedEarly())
    }
    if (closing.aborted) onClose()
    else if (caller?.aborted === true) onCaller()
    else if (harmlessEnd?.aborted === true) onHarmlessEnd()
    const timer = setTimeout(() => ending.abort(timedOut(timeoutMs)), timeoutMs)
    closing.addEventListener('abort', onClose)
    caller?.addEventListener('abort', onCaller)
    harmlessEnd?.addEventListener('abort', onHarmlessEnd)
    this.#open.add(scope)
    let hasFailed = true
    try {
      const answer = await run(scope)
      hasFailed = false
      return answer
    } finally {
      const isTold = saysOfEtcd(scope)
      this.#open.delete(scope)
      clearTimeout(timer)
      closing.removeEventListener('abort', onClose)
      caller?.removeEventListener('abort', onCaller)
      harmlessEnd?.removeEventListener('abort', onHarmlessEnd)
      // Ends what is still being asked of other members.
      ending.abort(OVER)
      if (isTold) {
        this.#onCall?.({ path: method.path, ms: this.#clock.now() - startedAt, hasFailed })
      }
    }
  }

  async #write<Answer>(request: Request<Answer>, scope: Scope): Promise<CallAnswer<Answer>> {
    const { connectionMax } = scope
    const backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
    const refused = new Set<Endpoint>()
    let last: EtcdError | undefined
    while (!scope.signal.aborted && scope.harmlessEnd?.aborted !== true) {
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
      if ('answer' in outcome) return this.#servedBy(outcome)
      if (outcome.error.maybeApplied || !isWorthAnotherTry(outcome.error)) throw outcome.error
      last = outcome.error
      refused.add(endpoint)
    }
    throw this.#neverSent(scope, last)
  }

  /** One that is lost does not come back: the next one has a higher number. */
  #checkConnections(connectionMax: ConnectionNumber | undefined): void {
    if (connectionMax === undefined) return
    if (this.#endpoints.pick('calls', { connectionMax }) === undefined) throw outdated()
  }

  async #writeOnce<Answer>(
    request: Request<Answer>,
    scope: Scope,
    endpoint: Endpoint,
  ): Promise<Outcome<Answer>> {
    // Those who come after this write need not wait with it.
    const doubt = setTimeout(() => endpoint.suspect(), doubtDelayMs(scope))
    scope.isWriting = true
    const outcome = await this.#ask(request, scope, endpoint)
    scope.isWriting = false
    clearTimeout(doubt)
    return outcome
  }

  async #read<Answer>(
    request: Request<Answer>,
    scope: Scope,
    among: readonly Endpoint[],
  ): Promise<CallAnswer<Answer>> {
    const backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
    const race: Race<Answer> = { among, asked: new Set(), running: new Map() }
    let last: EtcdError | undefined
    while (!scope.signal.aborted) {
      this.#askOneMore(request, scope, race)
      if (race.running.size === 0) {
        await this.#beforeNextRound(race, backoff, scope)
        continue
      }
      const outcome = await this.#firstOf(race, scope)
      if (outcome === undefined) continue
      if ('answer' in outcome) return this.#won(race, outcome)
      if (!isWorthAnotherTry(outcome.error)) throw outcome.error
      last = outcome.error
    }
    throw this.#neverSent(scope, last)
  }

  #askOneMore<Answer>(request: Request<Answer>, scope: Scope, race: Race<Answer>): void {
    const endpoint = this.#endpoints.pick('calls', { avoid: race.asked, among: race.among })
    if (endpoint === undefined) return
    race.asked.add(endpoint)
    race.running.set(endpoint, this.#ask(request, scope, endpoint))
  }

  #won<Answer>(race: Race<Answer>, outcome: CallAnswer<Answer>): CallAnswer<Answer> {
    // The others were asked before and have not answered: they are the slow ones.
    for (const silent of race.running.keys()) silent.suspect()
    // A member that was asked by name says nothing about where to go next.
    return race.among === this.#endpoints.all ? this.#servedBy(outcome) : outcome
  }

  #servedBy<Answer>(outcome: CallAnswer<Answer>): CallAnswer<Answer> {
    outcome.endpoint.trust()
    this.#endpoints.prefer(outcome.endpoint)
    return outcome
  }

  /** Everybody failed: begin again after a while. Nobody was there: wait for somebody. */
  async #beforeNextRound(race: Race<unknown>, backoff: Backoff, scope: Scope): Promise<void> {
    if (race.asked.size === 0) {
      await this.#endpoints.changed(scope.signal)
      return
    }
    race.asked.clear()
    await pause(backoff.next(), scope.signal)
  }

  /** The first answer or failure; undefined when it is time to ask somebody else as well. */
  async #firstOf<Answer>(race: Race<Answer>, scope: Scope): Promise<Outcome<Answer> | undefined> {
    const { running } = race
    let timer: NodeJS.Timeout | undefined
    const doubt = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), doubtDelayMs(scope))
    })
    const first = await Promise.race([...running.values(), doubt])
    clearTimeout(timer)
    if (first === undefined) for (const endpoint of running.keys()) endpoint.suspect()
    else running.delete(first.endpoint)
    return first
  }

  /** One attempt at one member. Settles when the scope ends, if not before; never rejects. */
  #ask<Answer>(
    request: Request<Answer>,
    scope: Scope,
    endpoint: Endpoint,
  ): Promise<Outcome<Answer>> {
    const { method, message } = request
    return new Promise((resolve) => {
      const onEnd = () => {
        settle({ endpoint, error: endOfAttempt(scope, endpoint, method) })
        cancel?.()
      }
      const onLost = () => {
        settle({ endpoint, error: connectionLost(endpoint, method) })
        cancel?.()
      }
      // gRPC may move a call that it has not begun to the next connection, which may be too new.
      const link = endpoint.link('calls')
      const lost = scope.connectionMax === undefined ? undefined : link.lost
      const settle = (outcome: Outcome<Answer>) => {
        scope.signal.removeEventListener('abort', onEnd)
        lost?.removeEventListener('abort', onLost)
        resolve(outcome)
      }
      const remainingMs = scope.deadlineAt - this.#clock.now()
      const deadline = new Date(Date.now() + remainingMs + deadlineSlackMs)
      let cancel: (() => void) | undefined
      scope.signal.addEventListener('abort', onEnd)
      lost?.addEventListener('abort', onLost)
      const { client } = link
      try {
        cancel = startCall(client, method, { request: message, deadline }, (failed, answer) => {
          if (failed !== undefined) {
            // Not if we have cancelled it ourselves: that is no fault of the member.
            if (!scope.signal.aborted) settle({ endpoint, error: endpoint.failed(failed, method) })
            return
          }
          link.noteAnswer()
          // As of now: gRPC may have moved the call to a later connection of the same link.
          settle({ endpoint, answer: answer as Answer, connection: link.number })
        })
        scope.isSent = true
      } catch (cause) {
        // The channel would not take the call, so nothing was sent.
        const text = 'the connection does not take calls'
        settle({ endpoint, error: new EtcdError({ kind: 'unavailable', message: text, cause }) })
      }
    })
  }

  /** The end of a call of which nothing was ever sent, or that was refused each time. */
  #neverSent(scope: Scope, last: EtcdError | undefined): EtcdError {
    const end = endOf(scope)
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

function doubtDelayMs(scope: Scope): number {
  return Math.min(doubtAfterMs, scope.timeoutMs / doubtShare)
}

/** Not when it was given up, by whomever, before anything of it was sent. */
function saysOfEtcd(scope: Scope): boolean {
  return scope.isSent || endOf(scope).kind === 'timeout'
}

/** Why the scope ended. */
function endOf(scope: Scope): EtcdError {
  const reason: unknown = scope.signal.reason
  return reason instanceof EtcdError ? reason : timedOut(scope.timeoutMs)
}

/** The same, told of a call that was under way at a member. */
function endOfAttempt(scope: Scope, endpoint: Endpoint, method: Method<unknown>): EtcdError {
  const { kind, message, cause } = endOf(scope)
  return new EtcdError({
    kind,
    message,
    endpoint: endpoint.name,
    maybeApplied: method.write,
    cause,
  })
}

function timedOut(timeoutMs: number): EtcdError {
  return new EtcdError({ kind: 'timeout', message: `no answer within ${Math.round(timeoutMs)} ms` })
}

function outdated(): EtcdError {
  const message = 'the connections it was to be sent over are gone'
  return new EtcdError({ kind: 'outdated', message })
}

function connectionLost(endpoint: Endpoint, method: Method<unknown>): EtcdError {
  const message = 'the connection was lost'
  const { write: maybeApplied } = method
  return new EtcdError({ kind: 'unavailable', message, endpoint: endpoint.name, maybeApplied })
}

function endedEarly(): EtcdError {
  return new EtcdError({ kind: 'unavailable', message: 'given up before its deadline' })
}

function gaveUp(cause: unknown): EtcdError {
  return new EtcdError({ kind: 'cancelled', message: 'the caller gave up', cause })
}
