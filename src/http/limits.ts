/**
 * Every bound that a client can run into before the server has looked at what it asks for.
 * They are those of a Kubernetes API server where it has one, so that nobody who moves over
 * meets a new wall. Headers are the exception: a megabyte of them on each of thousands of
 * connections, before anybody has shown who they are, would be all the memory there is.
 */
export interface HttpLimits {
  /** From the first byte of a connection (or of the next request on it) to the end of its headers. */
  readonly headersTimeoutMs: number
  /** From the headers to the end of the answer; of long ones, to the end of their beginning. */
  readonly requestTimeoutMs: number
  /** How long a connection may stay without a request. Longer than any usual load balancer waits. */
  readonly idleTimeoutMs: number
  readonly handshakeTimeoutMs: number
  /** How long a client may take none of a response that is there for it. */
  readonly stalledTimeoutMs: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly bodyBytesMax: number
  /** Requests under way at once on one HTTP/2 connection. */
  readonly streamsMax: number
  /** How much of a body HTTP/2 takes before anybody reads it: per request, and per connection. */
  readonly streamWindowBytes: number
  readonly connectionWindowBytes: number
  /** PING and SETTINGS frames a client may send in ten seconds; each one costs us an answer. */
  readonly controlFramesPerTenSeconds: number
  /** Cancelled requests in a burst, and the rate at which the allowance grows back. */
  readonly resetBurst: number
  readonly resetsPerSecond: number
  readonly invalidFramesMax: number
  readonly refusedStreamsMax: number
  /** Memory nghttp2 may hold for one connection, in MB. */
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

/** What is read of a body nobody wanted, so that the answer is not lost to a reset connection. */
export const LINGER_BYTES_MAX: number = 256 * 1024
export const LINGER_MS: number = 500

/** Room for the longest namespace and name, escaped, and much more. */
export const PATH_BYTES_MAX: number = 8 * 1024
/** Room for long selectors and continue tokens, and for a parameter given hundreds of times. */
export const QUERY_BYTES_MAX: number = 64 * 1024
export const QUERY_PAIRS_MAX = 1000
/** Of the headers that are kept while a request waits; real ones have a few hundred bytes of them. */
export const HANDLER_HEADER_BYTES_MAX: number = 8 * 1024
/** Of the host that a request names, which HTTP/2 keeps with its stream. */
export const AUTHORITY_BYTES_MAX: number = 1024
