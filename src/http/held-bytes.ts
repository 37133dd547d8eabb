/** How much is charged for what a request brings and what it is sent. */
import { HANDLER_HEADERS, isStream, type RequestHeaders, type Response } from './exchange.ts'

/** A query is held as it came and parsed. */
const QUERY_COPIES = 3
/** What each header takes besides its text. */
const HEADER_BYTES = 64
/** Of a response that is made while it is sent, the part that is being sent. */
const STREAM_BYTES = 64 * 1024

/** What is held of headers as they came: their expanded size, however short they were on the wire. */
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
  return isStream(body) ? STREAM_BYTES : body.length
}

/** What is held while a request waits, of the headers that are kept and its query. */
export function waitingMemory(headers: RequestHeaders, search: string): number {
  return handlerHeaderBytes(headers) + QUERY_COPIES * search.length
}
