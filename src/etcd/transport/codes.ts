/** The status codes of gRPC. */
export const status = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

/**
 * - `idle`: not connected, and it does not try to be.
 * - `connecting`: the first attempt since it was idle.
 * - `failing`: the last attempt failed; it retries with backoff, and stays in this state meanwhile.
 * - `closed`: for good.
 */
export type ChannelState = 'idle' | 'connecting' | 'ready' | 'failing' | 'closed'
