/**
 * The limits of connections and requests that the HTTP layer enforces. They are at least what clients
 * of a Kubernetes API server need. Headers and bodies are limited further, since those of thousands of
 * unauthenticated connections would exhaust the memory.
 */
export interface HttpLimits {
  /** Time from the first byte of a connection, or of its next request, to the end of the headers. */
  readonly headersTimeoutMs: number
  /** Time from the headers to the end of the response, or of the initial part of a watch. */
  readonly requestTimeoutMs: number
  /** How long a connection may be idle. Longer than the idle timeouts of common load balancers. */
  readonly idleTimeoutMs: number
  readonly handshakeTimeoutMs: number
  /** How long a client may read nothing of a response that is ready to be sent. */
  readonly stalledTimeoutMs: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly bodyBytesMax: number
  /** After this time, an incomplete body must have averaged the minimum rate. */
  readonly bodyGraceMs: number
  readonly bodyBytesPerSecondMin: number
  /** Requests in flight at the same time on one connection. */
  readonly streamsMax: number
  /** HTTP/2 flow-control windows, which cap the buffered body bytes per request and connection. */
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

/** How much of an unread body is drained before closing: a reset could lose the response. */
export const LINGER_BYTES_MAX: number = 256 * 1024
export const LINGER_MS: number = 500

/** More than the longest namespace and name take, percent-encoded. */
export const PATH_BYTES_MAX: number = 8 * 1024
/** Enough for long selectors and continue tokens, and for a parameter given hundreds of times. */
export const QUERY_BYTES_MAX: number = 64 * 1024
export const QUERY_PAIRS_MAX = 1000
/** Cap on the headers that handlers get; they usually take a few hundred bytes. */
export const HANDLER_HEADER_BYTES_MAX: number = 8 * 1024
/** Limits the host that a request names, which Node retains for the life of an HTTP/2 stream. */
export const AUTHORITY_BYTES_MAX: number = 1024
