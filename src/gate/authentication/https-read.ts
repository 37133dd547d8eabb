/** Reads something from another server over HTTPS, and neither waits nor listens without an end. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'

export interface HttpsReadOptions {
  /** PEM; without it, the public authorities that Node knows. */
  readonly ca: string | undefined
  /** For the whole of it, from looking up the name to the last byte. */
  readonly timeoutMs: number
  /** Of the answer. */
  readonly bytesMax: number
}

/**
 * The body of an answer with status 200; rejects on anything else. Redirects are not followed, and
 * a certificate that does not verify is an error: there is no way to say otherwise.
 */
export async function httpsRead(url: URL, options: HttpsReadOptions): Promise<Buffer> {
  const { ca, timeoutMs, bytesMax } = options
  const signal = AbortSignal.timeout(timeoutMs)
  const request = https.get(url, {
    // A connection of its own: so seldom is one needed that to keep it would be a waste.
    agent: false,
    signal,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    headers: { accept: 'application/json' },
    ...(ca === undefined ? {} : { ca }),
  })
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`${url} answers ${response.statusCode}`)
    return await collect(response, bytesMax)
  } catch (cause) {
    throw signal.aborted ? new Error(`${url} gives no answer in time`) : cause
  } finally {
    request.destroy()
  }
}

async function collect(response: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
