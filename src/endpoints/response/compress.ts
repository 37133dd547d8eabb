import { pipeline, Readable } from 'node:stream'
import { promisify } from 'node:util'
import { constants, createGzip, gzip } from 'node:zlib'
import { type Chunk, isStream, type Request, type Response } from '../../http/exchange.ts'

/** Compressing a shorter response takes longer than it saves in transfer. */
export const compressBytesMin: number = 128 * 1024

/** Events are so similar that the fastest level already achieves most of the reduction. */
const options = { level: constants.Z_BEST_SPEED, chunkSize: 64 * 1024 }

const gzipWhole = promisify<Chunk, typeof options, Buffer>(gzip)

/**
 * Gzips the response if it is long and the client accepts gzip. Compression runs on other threads,
 * no faster than the client reads. Watches compress their own list (watch-gzip.ts).
 */
export function compressed(request: Request, responding: Promise<Response>): Promise<Response> {
  return takesGzip(request) ? responding.then(gzippedIfLong) : responding
}

function gzippedIfLong(response: Response): Response | Promise<Response> {
  const { body, longRunning } = response
  if (longRunning === true) return response
  if (isStream(body)) return compressedStream(response, body)
  if (Buffer.byteLength(body) <= compressBytesMin) return response
  return gzipWhole(body, options).then((whole) => asGzip(response, whole))
}

async function compressedStream(response: Response, body: AsyncIterable<Chunk>): Promise<Response> {
  const start = await readStart(body)
  if (start.rest === undefined) return { ...response, body: Buffer.concat(start.chunks) }
  return asGzip(response, gzipped(resumed(start.chunks, start.rest)))
}

export function takesGzip(request: Pick<Request, 'headers'>): boolean {
  const header = request.headers['accept-encoding']
  return header?.split(',').some((coding) => coding.trim() === 'gzip') ?? false
}

export const GZIP_HEADERS = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' } as const

function asGzip(response: Response, body: Response['body']): Response {
  const headers = { ...response.headers, ...GZIP_HEADERS }
  return { ...response, headers, body, lendsChunks: false }
}

/** Reads a stream until it is known to be long. `rest` is undefined if it ended before. */
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
    // Copied, since gzip reads ahead, and the buffer of a chunk may be reused.
    for await (const chunk of { [Symbol.asyncIterator]: () => rest }) yield Buffer.from(chunk)
  } finally {
    await rest.return?.()
  }
}

/** Ends and fails with its source. A reader that stops early ends the source as well. */
async function* gzipped(source: AsyncIterable<Chunk>): AsyncGenerator<Buffer> {
  const zip = createGzip(options)
  // Errors reach the reader of `zip`.
  pipeline(Readable.from(source), zip, () => undefined)
  yield* zip
}
