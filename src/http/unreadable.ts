/** What arrives on an HTTP/1.1 connection and is no HTTP/1.1. */
import type { Socket } from 'node:net'
import { ExchangeError } from './exchange.ts'
import { LINGER_MS } from './limits.ts'

/**
 * Answers what could not be read as a request. Node does the same but closes at once, and what the
 * client is still sending then resets the connection, often before the answer is read.
 */
export function refuseConnection(socket: Socket, code: string | undefined): void {
  const status = UNREADABLE.get(code ?? '') ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

const UNREADABLE: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** What is wrong with a body that turns out halfway to be no HTTP. */
export function unreadableBody(code: string): ExchangeError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new ExchangeError('too-large', 'a chunk of the body has too long an extension')
  return new ExchangeError('malformed', 'the body of the request is not chunked as HTTP/1.1 has it')
}
