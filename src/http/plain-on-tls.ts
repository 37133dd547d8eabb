import type { TLSSocket } from 'node:tls'
import { belowTls } from './peer.ts'

/** How TLS calls the first bytes of an HTTP request where a handshake should begin. */
const IS_HTTP = 'ERR_SSL_HTTP_REQUEST'
/** Word for word what servers written in Go say, so that what people know to search for fits. */
const ANSWER = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'

/**
 * Tells a client that speaks plain HTTP to a TLS port what is wrong, in the one form it can read.
 * A few bytes, written once and not waited for: Node closes the connection right after.
 */
export function answerPlainHttp(error: NodeJS.ErrnoException, failed: TLSSocket): void {
  if (error.code !== IS_HTTP) return
  // TLS is over and done with.
  const below = belowTls(failed)
  if (below === failed || !below.writable) return
  // Whoever has gone in the meantime does not hear it.
  below.on('error', () => {})
  below.end(ANSWER)
}
