import type { Socket } from 'node:net'

/** The error of OpenSSL when a connection starts with an HTTP request instead of a handshake. */
const HTTP_REQUEST_ERROR = 'ERR_SSL_HTTP_REQUEST'
/** The exact text of Go's servers, so that a search for the message finds known explanations. */
const RESPONSE = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'

/**
 * Sends a plain HTTP error response to a client that sent plain HTTP to the TLS port: it could not
 * read a TLS error. The TLS socket has failed, so this takes the TCP socket below it. The write is
 * not awaited, since Node closes the connection right after.
 */
export function refusePlainHttp(error: NodeJS.ErrnoException, tcp: Socket | undefined): void {
  if (error.code !== HTTP_REQUEST_ERROR || tcp?.writable !== true) return
  // The client may have disconnected already; then the write fails, which is harmless.
  tcp.on('error', () => {})
  tcp.end(RESPONSE)
}
