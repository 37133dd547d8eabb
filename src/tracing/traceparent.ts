/** The W3C's `traceparent` header, which names the trace that a client's request belongs to. */

/** The client's span. */
export interface RemoteParent {
  readonly traceId: string
  readonly spanId: string
  /** Whether the client records its trace. */
  readonly isSampled: boolean
}

/** Later versions may add fields after these four; version ff does not exist. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/
const LENGTH_MAX = 512
const ZEROS = /^0+$/
const SAMPLED = 1

/** Returns undefined for a header that the standard says to ignore. */
export function parseTraceparent(header: string): RemoteParent | undefined {
  if (header.length > LENGTH_MAX) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(header) ?? []
  if (version === undefined || version === 'ff') return undefined
  if (version === '00' && more !== undefined) return undefined
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}
