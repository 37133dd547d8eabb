/** Charges the memory of requests and their responses. */
import type { Holding } from '../lib/client-memory/holding.ts'
import {
  abandon,
  HANDLER_HEADERS,
  isStream,
  type RequestHeaders,
  type Response,
} from './exchange.ts'
import { MEMORY_REFUSAL } from './refuse.ts'

/** A query is held both as sent and parsed. */
const QUERY_COPIES = 3
/** Overhead per header, in addition to its text. */
const HEADER_BYTES = 64
/** Charged for a streamed response: the part that is being sent. */
const STREAM_BYTES = 64 * 1024

/**
 * Charged for headers as sent: their decompressed size, not their size on the wire. Node decodes
 * headers and targets as Latin-1, so each character is a byte.
 */
export function headerMemory(rawHeaders: readonly string[], target: string): number {
  let bytes = rawHeaders.length * (HEADER_BYTES / 2) + QUERY_COPIES * target.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}

export function handlerHeaderBytes(headers: RequestHeaders): number {
  let bytes = 0
  for (const name of HANDLER_HEADERS) bytes += headers[name]?.length ?? 0
  return bytes
}

export function heldBytes(body: Response['body']): number {
  return isStream(body) ? STREAM_BYTES : Buffer.byteLength(body)
}

/** Charged while a request waits in a queue: the retained headers, and its query. */
export function waitingMemory(headers: RequestHeaders, search: string): number {
  return handlerHeaderBytes(headers) + QUERY_COPIES * search.length
}

/** A response of at most this size is always sent: a refusal would need as much memory. */
const SHORT_BYTES_MAX = 4096

const FIRST_ERROR = 400

const REFUSED: Response = {
  status: 429,
  headers: MEMORY_REFUSAL.headers,
  body: MEMORY_REFUSAL.message,
}

/**
 * Charges the memory of a response before any of it is sent. If that exceeds a limit, a read gets
 * 429 instead. The response to a write is always sent, because it reports what the write has done.
 * So is a short response. While its user is over a limit, a short error is sent
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
