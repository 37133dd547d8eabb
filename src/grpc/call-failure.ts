import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import { status } from './status-codes.ts'

/**
 * Who ended a call:
 * - `local`: this client, because there was no connection, the call could not be sent, the deadline
 *   expired, or it does not accept the response.
 * - `transport`: the connection, or something between client and server that is not gRPC.
 * - `server`: the server, with a status of its own.
 */
export type FailureOrigin = 'local' | 'transport' | 'server'

export interface CallFailureDetails {
  /** A gRPC status code. */
  readonly code: number
  /** The server's message, or what broke. */
  readonly message: string
  readonly origin: FailureOrigin
  /** False only if the server has certainly not begun to process the call. */
  readonly mayHaveBeenApplied: boolean
}

/** A call that ended with a status other than OK, or without one. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure'
  readonly code: number
  readonly origin: FailureOrigin
  readonly mayHaveBeenApplied: boolean

  constructor({ code, message, origin, mayHaveBeenApplied }: CallFailureDetails) {
    super(message)
    this.code = code
    this.origin = origin
    this.mayHaveBeenApplied = mayHaveBeenApplied
  }
}

/** There was no connection to send the call on. */
export function notSent(): CallFailure {
  return new CallFailure({
    code: status.UNAVAILABLE,
    message: 'there is no connection',
    origin: 'local',
    mayHaveBeenApplied: false,
  })
}

/** Node refuses to send the call, for example because of its headers. */
export function notSendable(error: unknown): CallFailure {
  return new CallFailure({
    code: status.INTERNAL,
    message: `the call cannot be sent: ${error instanceof Error ? error.message : error}`,
    origin: 'local',
    mayHaveBeenApplied: false,
  })
}

export function deadlineExceeded(): CallFailure {
  return new CallFailure({
    code: status.DEADLINE_EXCEEDED,
    message: 'deadline exceeded',
    origin: 'local',
    mayHaveBeenApplied: true,
  })
}

/** The server sent a response that this client does not accept. */
export function unacceptable(code: number, message: string): CallFailure {
  return new CallFailure({ code, message, origin: 'local', mayHaveBeenApplied: true })
}

export function connectionLost(): CallFailure {
  return new CallFailure({
    code: status.UNAVAILABLE,
    message: 'the connection was lost',
    origin: 'transport',
    mayHaveBeenApplied: true,
  })
}

/** The stream ended without a status. A refused stream has not been processed. */
export function streamReset(stream: ClientHttp2Stream): CallFailure {
  const { rstCode } = stream
  return new CallFailure({
    code: status.UNAVAILABLE,
    message: `the stream was reset with code ${rstCode}`,
    origin: 'transport',
    mayHaveBeenApplied: rstCode !== constants.NGHTTP2_REFUSED_STREAM,
  })
}

/** Undefined when the status is OK, or when the headers have none. */
export function failureIn(headers: IncomingHttpHeaders): CallFailure | undefined {
  const code = headers['grpc-status']
  if (code === undefined || code === '0') return undefined
  return new CallFailure({
    code: Number(code) || status.UNKNOWN,
    message: decoded(headers['grpc-message']),
    origin: 'server',
    mayHaveBeenApplied: true,
  })
}

/** A response of something that is not a gRPC server, such as a proxy; undefined if it is one. */
export function notGrpc(headers: IncomingHttpHeaders): CallFailure | undefined {
  const httpStatus = headers[constants.HTTP2_HEADER_STATUS] as unknown as number
  if (httpStatus === constants.HTTP_STATUS_OK) return undefined
  return new CallFailure({
    code: codesOfHttp.get(httpStatus) ?? status.UNKNOWN,
    message: `received HTTP status code ${httpStatus}`,
    origin: 'transport',
    mayHaveBeenApplied: true,
  })
}

const codesOfHttp: ReadonlyMap<number, number> = new Map([
  [400, status.INTERNAL],
  [401, status.UNAUTHENTICATED],
  [403, status.PERMISSION_DENIED],
  [404, status.UNIMPLEMENTED],
  [429, status.UNAVAILABLE],
  [502, status.UNAVAILABLE],
  [503, status.UNAVAILABLE],
  [504, status.UNAVAILABLE],
])

/** Messages are percent-encoded. */
function decoded(message: string | string[] | undefined): string {
  const text = Array.isArray(message) ? message.join(', ') : (message ?? '')
  try {
    return decodeURIComponent(text)
  } catch {
    // A text that is not properly encoded still says more than nothing.
    return text
  }
}
