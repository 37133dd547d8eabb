import { pipeline, Readable } from 'node:stream'
import { promisify } from 'node:util'
import { constants, createGzip, gzip } from 'node:zlib'
import { type Chunk, isStream, type Request, type Response } from '../http/exchange.ts'

/** Below this a client gains less from a smaller answer than it waits for it. */
export const compressBytesMin: number = 128 * 1024

/** Events are so much alike that the quickest level makes most of the gain. */
const options = { level: constants.Z_BEST_SPEED, chunkSize: 64 * 1024 }

const gzipWhole = promisify<Chunk, typeof options, Buffer>(gzip)

/**
 * The same answer, gzipped if the client takes that and it is long. Compressing happens on other
 * threads, as fast as the client reads. A watch is left alone: its frames must not wait for more.
 */
export function compressed(request: Request, response: Response): Response | Promise<Response> {
  if (response.longRunning === true || !takesGzip(request)) return response
  const { body } = response
  if (isStream(body)) return compressedStream(response, body)
  if (Buffer.byteLength(body) <= compressBytesMin) return response
  return gzipWhole(body, options).then((whole) => asGzip(response, whole))
}

async function compressedStream(response: Response, body: AsyncIterable<Chunk>): Promise<Response> {
  const start = await readStart(body)
  if (start.rest === undefined) return { ...response, body: Buffer.concat(start.chunks) }
  return asGzip(response, gzipped(resumed(start.chunks, start.rest)))
}

function takesGzip(request: Request): boolean {
  const header = request.headers['accept-encoding']
  return header?.split(',').some((coding) => coding.trim() === 'gzip') ?? false
}

function asGzip(response: Response, body: Response['body']): Response {
  const headers = { ...response.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' }
  return { ...response, headers, body, lendsChunks: false }
}

/** As much of a stream as it takes to know whether it is long; `rest` is undefined if it is not. */
async function readStart(body: AsyncIterable<Chunk>): Promise<{
  readonly chunks: readonly Buffer[]
  readonly rest: AsyncIterator<Chunk> | undefined
}> {
  const rest = body[Symbol.asyncIterator]()
  const chunks: Buffer[] = []
  for (let bytes = 0; bytes <= compressBytesMin; ) {
    const { done, value } = await rest.next()
    if (done === true) return { chunks, rest: undefined }
    const chunk = Buffer.from(value)
    chunks.push(chunk)
    bytes += chunk.length
  }
  return { chunks, rest }
}

async function* resumed(
  chunks: readonly Buffer[],
  rest: AsyncIterator<Chunk>,
): AsyncGenerator<Buffer> {
  try {
    yield* chunks
    // Copies: the stream that compresses reads ahead, and a chunk may only be lent.
    for await (const chunk of { [Symbol.asyncIterator]: () => rest }) yield Buffer.from(chunk)
  } finally {
    await rest.return?.()
  }
}

/** Ends, and fails, as its source does. Whoever stops reading it stops the source. */
async function* gzipped(source: AsyncIterable<Chunk>): AsyncGenerator<Buffer> {
  const zip = createGzip(options)
  // What goes wrong is thrown to whoever reads from `zip`.
  pipeline(Readable.from(source), zip, () => undefined)
  yield* zip
}
