/** Handles input on an HTTP/1.1 connection that is not valid HTTP/1.1. */
import type { Socket } from 'node:net'
import { ExchangeError } from './exchange.ts'
import { LINGER_MS } from './limits.ts'

/**
 * Sends an error response for input that cannot be parsed as a request, then closes the connection.
 * Node does the same but closes at once. If the client is still sending then, the connection is
 * reset, often before the client has read the response.
 */
export function refuseConnection(socket: Socket, code: string | undefined): void {
  const status = STATUS_BY_ERROR.get(code ?? '') ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

const STATUS_BY_ERROR: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** The error for a request body that cannot be parsed, reported while it is being read. */
export function malformedBodyError(code: string): ExchangeError {
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new ExchangeError('too-large', 'a chunk extension in the request body is too long')
  return new ExchangeError('malformed', 'the request body is not valid HTTP/1.1 chunked encoding')
}
