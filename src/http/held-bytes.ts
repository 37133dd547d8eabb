/** How much memory is charged for a request and its response. */
import { HANDLER_HEADERS, isStream, type RequestHeaders, type Response } from './exchange.ts'

/** A query is held both as sent and parsed. */
const QUERY_COPIES = 3
/** Overhead per header, in addition to its text. */
const HEADER_BYTES = 64
/** Charged for a streamed response: the part that is being sent. */
const STREAM_BYTES = 64 * 1024

/**
 * Charged for headers as sent: their decompressed size, not their size on the wire. Node decodes
 * headers and targets as Latin-1, so that a character of them is a byte.
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

/** Charged while a request waits in a queue: the headers that are kept, and its query. */
export function waitingMemory(headers: RequestHeaders, search: string): number {
  return handlerHeaderBytes(headers) + QUERY_COPIES * search.length
}
