import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { status } from './codes.ts'

/** A call that ended with another status than OK, or without one. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure'
  readonly code: number
  /** The message of the server, or what broke. */
  readonly details: string
  /** The server has certainly not begun with the call. */
  readonly neverSent: boolean

  constructor(
    code: number,
    details: string,
    { neverSent = false }: { readonly neverSent?: boolean } = {},
  ) {
    super(details)
    this.code = code
    this.details = details
    this.neverSent = neverSent
  }
}

/** There was no connection to send it on. */
export function notSent(): CallFailure {
  return new CallFailure(status.UNAVAILABLE, 'Connection dropped', { neverSent: true })
}

export function connectionDropped(): CallFailure {
  return new CallFailure(status.UNAVAILABLE, 'Connection dropped')
}

/** Names the server, since another one may send less. */
export function tooLarge(headers: OutgoingHttpHeaders, error: Error): CallFailure {
  const text = `${headers[':authority']} sent ${error.message}`
  return new CallFailure(status.RESOURCE_EXHAUSTED, text)
}

export function deadlineExceeded(): CallFailure {
  return new CallFailure(status.DEADLINE_EXCEEDED, 'Deadline exceeded')
}

/** The stream was reset, or closed without a status. A refused stream has not been processed. */
export function streamReset(code: number): CallFailure {
  const neverSent = code === constants.NGHTTP2_REFUSED_STREAM
  return new CallFailure(status.UNAVAILABLE, `Received RST_STREAM with code ${code}`, { neverSent })
}

/** A stream that ended without a status, because its connection is lost or it was reset. */
export function brokenStream(stream: ClientHttp2Stream, session: ClientHttp2Session): CallFailure {
  return session.destroyed ? connectionDropped() : streamReset(stream.rstCode)
}

/** Undefined when the status is OK, or when the headers have none. */
export function failureIn(headers: IncomingHttpHeaders): CallFailure | undefined {
  const code = headers['grpc-status']
  if (code === undefined || code === '0') return undefined
  return new CallFailure(Number(code) || status.UNKNOWN, decoded(headers['grpc-message']))
}

/** A response of something that is not a gRPC server, such as a proxy; undefined if it is one. */
export function notGrpc(headers: IncomingHttpHeaders): CallFailure | undefined {
  const httpStatus = headers[constants.HTTP2_HEADER_STATUS] as unknown as number
  if (httpStatus === constants.HTTP_STATUS_OK) return undefined
  const code = codesOfHttp.get(httpStatus) ?? status.UNKNOWN
  return new CallFailure(code, `Received HTTP status code ${httpStatus}`)
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
    // Not encoded as it should be; the text as it is says more than nothing.
    return text
  }
}
