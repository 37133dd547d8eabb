/**
 * Every limit that applies before a handler reads the request. They are the limits of a Kubernetes
 * API server where it has one, so that clients that move over meet no new limits.
 * Headers are the exception: a megabyte of them on each of thousands of connections, before any
 * client is authenticated, would use all memory.
 */
export interface HttpLimits {
  /** From the first byte of a connection, or of its next request, to the end of the headers. */
  readonly headersTimeoutMs: number
  /** From the headers to the end of the response, or of the initial part of a long-running one. */
  readonly requestTimeoutMs: number
  /** How long a connection may be idle. Longer than the idle timeouts of usual load balancers. */
  readonly idleTimeoutMs: number
  readonly handshakeTimeoutMs: number
  /** How long a client may read nothing of a response that is ready to be sent. */
  readonly stalledTimeoutMs: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly bodyBytesMax: number
  /** A body that is not complete after this time must have arrived at the minimum rate or faster. */
  readonly bodyGraceMs: number
  readonly bodyBytesPerSecondMin: number
  /** Requests in flight at the same time on one connection. */
  readonly streamsMax: number
  /** Flow-control windows of HTTP/2, which bound the unread bodies per request and connection. */
  readonly streamWindowBytes: number
  readonly connectionWindowBytes: number
  /** PING and SETTINGS frames a client may send in ten seconds; each one needs a reply. */
  readonly controlFramesPerTenSeconds: number
  /** Token bucket for cancelled requests: its size, and its refill rate. */
  readonly resetBurst: number
  readonly resetsPerSecond: number
  readonly invalidFramesMax: number
  readonly refusedStreamsMax: number
  /** Memory that nghttp2 may use for one connection, in MB. */
  readonly sessionMemoryMb: number
  readonly connectionsMax: number
}

export const DEFAULT_LIMITS: HttpLimits = {
  headersTimeoutMs: 32_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 90_000,
  handshakeTimeoutMs: 10_000,
  stalledTimeoutMs: 10_000,
  headerBytesMax: 128 * 1024,
  headerCountMax: 1000,
  bodyBytesMax: 1024 * 1024,
  bodyGraceMs: 5000,
  bodyBytesPerSecondMin: 1024,
  streamsMax: 100,
  streamWindowBytes: 64 * 1024,
  connectionWindowBytes: 1024 * 1024,
  controlFramesPerTenSeconds: 100,
  resetBurst: 1000,
  resetsPerSecond: 33,
  invalidFramesMax: 100,
  refusedStreamsMax: 100,
  sessionMemoryMb: 32,
  connectionsMax: 20_000,
}

/** How much of an unused body is read and discarded: a reset could lose the response. */
export const LINGER_BYTES_MAX: number = 256 * 1024
export const LINGER_MS: number = 500

/** More than the longest namespace and name take, percent-encoded. */
export const PATH_BYTES_MAX: number = 8 * 1024
/** Enough for long selectors and continue tokens, and for a parameter given hundreds of times. */
export const QUERY_BYTES_MAX: number = 64 * 1024
export const QUERY_PAIRS_MAX = 1000
/** For the headers that are kept while a request is queued; usually a few hundred bytes. */
export const HANDLER_HEADER_BYTES_MAX: number = 8 * 1024
/** For the host that a request names, which Node keeps for the life of an HTTP/2 stream. */
export const AUTHORITY_BYTES_MAX: number = 1024
