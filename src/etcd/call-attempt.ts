/** One attempt of a call at one member, and the errors of calls that end without a response. */
import type { Clock } from '../lib/clock.ts'
import type { Endpoint } from './endpoints.ts'
import { EtcdError } from './errors.ts'
import { type Method, startCall } from './grpc.ts'
import type { ConnectionNumber } from './protocol/protocol.ts'

/** The timeout that etcd gets is this much longer than ours, so that our own timer decides. */
const timeoutSlackMs = 250

/** One call from start to end, including all its attempts. */
export interface CallScope {
  readonly deadlineAt: number
  readonly timeoutMs: number
  /** Aborts at the deadline, by the caller's signal, or when the client closes. */
  readonly signal: AbortSignal
  /** Ends the call as well, unless it is a write that was already sent to a member. */
  readonly cancelIfSafe: AbortSignal | undefined
  /** The call uses connections up to this number only. */
  readonly connectionMax: ConnectionNumber | undefined
  /** Whether a write is in flight at a member. */
  isWriting: boolean
  /** Whether the call was sent to any member. */
  isSent: boolean
}

export interface CallRequest<Response> {
  readonly method: Method<Response>
  readonly message: Buffer
}

export interface CallResult<Response> {
  readonly endpoint: Endpoint
  readonly response: Response
  /** The connection that the response came over, or a later one. */
  readonly connection: ConnectionNumber
}

export type Outcome<Response> =
  | CallResult<Response>
  | { readonly endpoint: Endpoint; readonly error: EtcdError }

/** Sends the request to one member. Settles when the scope ends, if not before; never rejects. */
export function attemptCall<Response>(
  request: CallRequest<Response>,
  scope: CallScope,
  endpoint: Endpoint,
  clock: Clock,
): Promise<Outcome<Response>> {
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
    // A call that waits for a connection may be started on a later one, which may be too new.
    const link = endpoint.link('calls')
    const lost = scope.connectionMax === undefined ? undefined : link.lost
    const settle = (outcome: Outcome<Response>) => {
      scope.signal.removeEventListener('abort', onEnd)
      lost?.removeEventListener('abort', onLost)
      resolve(outcome)
    }
    const timeoutMs = Math.max(0, scope.deadlineAt - clock.now()) + timeoutSlackMs
    let cancel: (() => void) | undefined
    scope.signal.addEventListener('abort', onEnd)
    lost?.addEventListener('abort', onLost)
    const { client } = link
    try {
      cancel = startCall(client, method, { request: message, timeoutMs }, (failed, response) => {
        if (failed !== undefined) {
          // A call that we cancelled ourselves is not a failure of the member.
          if (!scope.signal.aborted) settle({ endpoint, error: endpoint.failed(failed, method) })
          return
        }
        link.noteResponse()
        // Read only now: the call may have waited for a later connection of the same link.
        settle({ endpoint, response: response as Response, connection: link.number })
      })
      scope.isSent = true
    } catch (cause) {
      // The channel rejected the call, so nothing was sent.
      const text = 'the connection does not accept calls'
      settle({ endpoint, error: new EtcdError({ kind: 'unavailable', message: text, cause }) })
    }
  })
}

/** The reason why the scope ended. */
export function endOf(scope: CallScope): EtcdError {
  const reason: unknown = scope.signal.reason
  return reason instanceof EtcdError ? reason : timedOut(scope.timeoutMs)
}

export function timedOut(timeoutMs: number): EtcdError {
  const message = `no response within ${Math.round(timeoutMs)} ms`
  return new EtcdError({ kind: 'timeout', message })
}

/** A write whose `connectionMax` no connection meets any more. */
export function outdated(): EtcdError {
  const message = 'the connections that the write was limited to are lost'
  return new EtcdError({ kind: 'outdated', message })
}

export function endedEarly(): EtcdError {
  return new EtcdError({ kind: 'unavailable', message: 'cancelled before its deadline' })
}

export function cancelledByCaller(cause: unknown): EtcdError {
  return new EtcdError({ kind: 'cancelled', message: 'cancelled by the caller', cause })
}

/** The reason why the scope ended, for a call that was in flight at a member. */
function endOfAttempt(scope: CallScope, endpoint: Endpoint, method: Method<unknown>): EtcdError {
  const { kind, message, cause } = endOf(scope)
  return new EtcdError({
    kind,
    message,
    endpoint: endpoint.name,
    maybeApplied: method.write,
    cause,
  })
}

function connectionLost(endpoint: Endpoint, method: Method<unknown>): EtcdError {
  const message = 'the connection was lost'
  const { write: maybeApplied } = method
  return new EtcdError({ kind: 'unavailable', message, endpoint: endpoint.name, maybeApplied })
}
