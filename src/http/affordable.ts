import type { Holding } from '../lib/client-memory/holding.ts'
import { abandon, type Response } from './exchange.ts'
import { heldBytes } from './held-bytes.ts'
import { MEMORY_REFUSAL } from './refuse.ts'

/** A response of at most this size is always sent: a refusal would need as much memory. */
const SHORT_BYTES_MAX = 4096

const FIRST_ERROR = 400

const REFUSED: Response = {
  status: 429,
  headers: MEMORY_REFUSAL.headers,
  body: MEMORY_REFUSAL.message,
}

/**
 * Charges the memory of a response before any of it is sent. When that passes a limit, a read gets
 * 429 instead. The response to a write is always sent, because it reports what the write has done.
 * A short response is always sent, too. While its user is over a limit, a short error is sent
 * without its body: it ends with its headers, so a client that does not read cannot pile them up.
 */
export function affordable(
  response: Response,
  { method, memory }: { readonly method: string; readonly memory: Holding },
): Response {
  const bytes = method === 'HEAD' ? 0 : heldBytes(response.body)
  const isWrite = method !== 'GET' && method !== 'HEAD'
  if (isWrite || bytes <= SHORT_BYTES_MAX) {
    if (response.status >= FIRST_ERROR && bytes <= SHORT_BYTES_MAX && memory.isUserOverLimit) {
      return { ...response, body: '' }
    }
    memory.set('response', bytes)
    return response
  }
  if (memory.hold('response', bytes) === undefined) return response
  abandon(response.body)
  const auditId = response.headers['audit-id']
  const headers = { ...REFUSED.headers, ...(auditId !== undefined && { 'audit-id': auditId }) }
  return { ...REFUSED, headers }
}
