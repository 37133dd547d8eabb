import { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

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
  // TLS is over and done with; what is below it is known to Node alone.
  const { _parent: below } = failed as { readonly _parent?: unknown }
  if (!(below instanceof Socket) || !below.writable) return
  // Whoever has gone in the meantime does not hear it.
  below.on('error', () => {})
  below.end(ANSWER)
}
