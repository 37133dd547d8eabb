/** The scope of a call, its attempts at members, and the errors of calls that end without a response. */
import { AbortListener } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Placed } from '../lib/placed-set.ts'
import { EtcdError } from './errors.ts'
import type { Member } from './members.ts'
import type { Method } from './methods.ts'
import type { CallOptions, ConnectionNumber } from './protocol/protocol.ts'

/** The timeout that etcd gets is this much longer than ours, so that our own timer decides. */
const timeoutSlackMs = 250

/**
 * One call from start to end, including all its attempts. It ends at the deadline, by the caller's
 * signals, or when the client closes. An AbortController for each call, and a listener on the signal of
 * the client, would take a tenth of the time of a call, so there are callbacks instead.
 */
export class CallScope implements Placed {
  place = -1
  readonly timeoutMs: number
  readonly deadlineAt: number
  /** Ends the call as well, unless it is a write that was already sent to a member. */
  readonly cancelIfSafe: AbortSignal | undefined
  /** The highest number of a connection that the call may use. */
  readonly connectionMax: ConnectionNumber | undefined
  /** Whether a write is in flight at a member. */
  isWriting = false
  /** Whether the call was sent to any member. */
  isSent = false
  readonly #caller: AbortListener | undefined
  #canceller: AbortListener | undefined
  readonly #timer: NodeJS.Timeout
  readonly #callbacks: (() => void)[] = []
  #isOver = false
  #reason: EtcdError | undefined
  #waits: AbortController | undefined

  constructor(options: CallOptions | undefined, timeoutMs: number, startedAt: number) {
    this.timeoutMs = timeoutMs
    this.deadlineAt = startedAt + timeoutMs
    const { signal, cancelIfSafe, connectionMax } = options ?? {}
    this.cancelIfSafe = cancelIfSafe
    this.connectionMax = connectionMax
    this.#timer = setTimeout(() => this.end(timedOut(timeoutMs)), timeoutMs)
    this.#caller = signal && new AbortListener(signal, () => this.end(cancelledBy(signal)))
    if (cancelIfSafe === undefined || this.#isOver) return
    this.#canceller = new AbortListener(cancelIfSafe, this.#onCancelIfSafe)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Why it ended without a result. */
  get reason(): EtcdError {
    return this.#reason ?? timedOut(this.timeoutMs)
  }

  /** Aborts at the end. Created on demand, since few calls have to wait. */
  get signal(): AbortSignal {
    this.#waits ??= new AbortController()
    if (this.#isOver) this.#waits.abort()
    return this.#waits.signal
  }

  /** Calls `run` at the end, unless `offEnd` is called before. */
  onEnd(run: () => void): void {
    this.#callbacks.push(run)
  }

  offEnd(run: () => void): void {
    const index = this.#callbacks.indexOf(run)
    if (index >= 0) this.#callbacks.splice(index, 1)
  }

  /** Cancels the attempts that are still in flight. Without a reason, the call has its result. */
  end(reason?: EtcdError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reason = reason
    clearTimeout(this.#timer)
    this.#caller?.[Symbol.dispose]()
    this.#canceller?.[Symbol.dispose]()
    for (const run of this.#callbacks.splice(0)) run()
    this.#waits?.abort()
  }

  readonly #onCancelIfSafe = (): void => {
    if (!this.isWriting) this.end(endedEarly())
  }
}

export interface CallRequest<Response> {
  readonly method: Method<Response>
  readonly message: Buffer
}

export interface CallResult<Response> {
  readonly member: Member
  readonly response: Response
  /** The connection that the response came over. */
  readonly connection: ConnectionNumber
}

export type Outcome<Response> =
  | CallResult<Response>
  | { readonly member: Member; readonly error: EtcdError }

/** Sends the request to one member. Settles when the scope ends, if not before; never rejects. */
export function attemptCall<Response>(
  { method, message }: CallRequest<Response>,
  scope: CallScope,
  member: Member,
  clock: Clock,
): Promise<Outcome<Response>> {
  const current = member.session('calls')
  if (current === undefined) return Promise.resolve({ member, error: notConnected(member) })
  const { session, number: connection } = current
  const { path, metadata, decode, maxBytes } = method
  const timeoutMs = Math.max(0, scope.deadlineAt - clock.now()) + timeoutSlackMs
  return new Promise((resolve) => {
    const onEnd = () => {
      resolve({ member, error: endOfAttempt(scope, member, method) })
      cancel()
    }
    const cancel = session.unary(
      { path, metadata, decode, maxBytes, message, timeoutMs },
      (failure, response) => {
        // A call that we cancelled ourselves is not a failure of the member.
        if (scope.isOver) return
        scope.offEnd(onEnd)
        if (failure === undefined) resolve({ member, response: response as Response, connection })
        else resolve({ member, error: member.failed(failure, method.isWrite) })
      },
    )
    scope.onEnd(onEnd)
    scope.isSent = true
  })
}

/** A write whose `connectionMax` no connection meets any more. */
export function outdated(): EtcdError {
  const message = 'the connections that the write was limited to are lost'
  return new EtcdError({ kind: 'outdated', message })
}

/** The reason why the scope ended, for a call that was in flight at a member. */
function endOfAttempt(scope: CallScope, member: Member, method: Method<unknown>): EtcdError {
  const { kind, message, cause } = scope.reason
  return new EtcdError({
    kind,
    message,
    endpoint: member.name,
    mayHaveBeenApplied: method.isWrite,
    cause,
  })
}

function notConnected(member: Member): EtcdError {
  const message = 'the connection was lost before the call was sent'
  return new EtcdError({ kind: 'unavailable', message, endpoint: member.name })
}

function timedOut(timeoutMs: number): EtcdError {
  const message = `no response within ${Math.round(timeoutMs)} ms`
  return new EtcdError({ kind: 'timeout', message })
}

function endedEarly(): EtcdError {
  return new EtcdError({ kind: 'unavailable', message: 'cancelled before its deadline' })
}

function cancelledBy({ reason }: AbortSignal): EtcdError {
  return new EtcdError({ kind: 'cancelled', message: 'cancelled by the caller', cause: reason })
}
