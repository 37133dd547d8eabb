/** Reads a document from another server over HTTPS, with limits on time and size. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { collectBytes } from '../../lib/bytes/collect-bytes.ts'

export interface HttpsReadOptions {
  /** PEM. If undefined, Node's public authorities are trusted. */
  readonly ca: string | undefined
  /** Covers everything from the DNS lookup to the last byte. */
  readonly timeoutMs: number
  /** The maximum size of the response body. */
  readonly bytesMax: number
}

/**
 * Returns the body of a response with status 200, and rejects on any other status. Does not follow
 * redirects. An invalid certificate is always an error: no option turns that off.
 */
export async function httpsRead(url: URL, options: HttpsReadOptions): Promise<Buffer> {
  const { ca, timeoutMs, bytesMax } = options
  const signal = AbortSignal.timeout(timeoutMs)
  const request = https.get(url, {
    // No keep-alive, since requests are rare.
    agent: false,
    signal,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    headers: { accept: 'application/json' },
    ...(ca === undefined ? {} : { ca }),
  })
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`${url}: status ${response.statusCode}`)
    const body = await collectBytes(response, bytesMax)
    if (body === 'too-long') throw new Error(`the response is longer than ${bytesMax} bytes`)
    return body
  } catch (cause) {
    throw signal.aborted ? new Error(`${url}: no response within ${timeoutMs} ms`) : cause
  } finally {
    request.destroy()
  }
}
