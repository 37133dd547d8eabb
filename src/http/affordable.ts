import type { Holding } from '../lib/holding.ts'
import { abandon, type Response } from './exchange.ts'
import { heldBytes } from './held-bytes.ts'
import { MEMORY_REFUSAL } from './refuse.ts'

/** A response that takes no more than this is sent whatever is held: to refuse it takes the same. */
const SHORT_BYTES_MAX = 4096

const HOLDS_ALL: Response = {
  status: 429,
  headers: MEMORY_REFUSAL.headers,
  body: MEMORY_REFUSAL.message,
}

/**
 * Charges a response, before any of it is sent. When there is no memory for it, a read is answered
 * with 429 instead; what a write has done is told in any case, and so is all that is short.
 */
export function affordable(
  response: Response,
  { method, memory }: { readonly method: string; readonly memory: Holding },
): Response {
  // Without a body it is not held back by a client that does not read.
  if (response.dropsConnection === true) return { ...HOLDS_ALL, body: '' }
  const bytes = method === 'HEAD' ? 0 : heldBytes(response.body)
  const isWrite = method !== 'GET' && method !== 'HEAD'
  if (isWrite || bytes <= SHORT_BYTES_MAX) {
    memory.set('response', bytes)
    return response
  }
  if (memory.hold('response', bytes) === undefined) return response
  abandon(response.body)
  const auditId = response.headers['audit-id']
  const headers = { ...HOLDS_ALL.headers, ...(auditId !== undefined && { 'audit-id': auditId }) }
  return { ...HOLDS_ALL, headers }
}
