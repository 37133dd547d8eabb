import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { makeRequest } from '../../gate/request.fixture.ts'
import type { Chunk, Request, Response } from '../../http/exchange.ts'
import { compressBytesMin, compressed } from './compress.ts'

function requestWith(acceptEncoding: string | undefined): Request {
  return makeRequest({ headers: { 'accept-encoding': acceptEncoding } })
}

function responseWith(body: Response['body']): Response {
  return { status: 200, headers: { 'content-type': 'application/json' }, body }
}

async function read(body: Response['body']): Promise<Buffer> {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

async function* pieces(count: number): AsyncGenerator<Chunk> {
  for (let index = 0; index < count; index++) yield `${index} ä ${'x'.repeat(1000)}\n`
}

const gzipHeaders = {
  'content-type': 'application/json',
  'content-encoding': 'gzip',
  vary: 'Accept-Encoding',
}
const long = 'é'.repeat(compressBytesMin / 2 + 1)

/** The response as it is sent. */
function sent(request: Request, response: Response): Promise<Response> {
  return compressed(request, Promise.resolve(response))
}

describe('compressed', () => {
  it('a long response is gzipped for a client that accepts gzip', async () => {
    for (const body of [long, Buffer.from(long)]) {
      const response = await sent(requestWith('br, gzip'), responseWith(body))
      assert.deepEqual(response.headers, gzipHeaders)
      assert.equal(gunzipSync(await read(response.body)).toString(), long)
    }
  })

  it('a client that does not accept gzip gets the response unchanged', async () => {
    for (const codings of [undefined, '', 'br', 'gzip;q=0']) {
      const response = responseWith(long)
      assert.equal(await sent(requestWith(codings), response), response)
    }
  })

  it('a short response and a watch are not compressed', async () => {
    const short = responseWith('x'.repeat(compressBytesMin))
    assert.equal(await sent(requestWith('gzip'), short), short)
    const watch = { ...responseWith(pieces(1000)), longRunning: true }
    assert.equal(await sent(requestWith('gzip'), watch), watch)
  })

  it('a stream is gzipped when it turns out to be long', async () => {
    const response = await sent(requestWith('gzip'), responseWith(pieces(1000)))
    assert.deepEqual(response.headers, gzipHeaders)
    assert.deepEqual(gunzipSync(await read(response.body)), await read(pieces(1000)))
  })

  it('a stream may reuse the buffers of its chunks', async () => {
    async function* lent(): AsyncGenerator<Chunk> {
      const buffer = Buffer.alloc(64 * 1024)
      for (let index = 0; index < 50; index++) yield buffer.fill(index)
    }
    const response = await sent(requestWith('gzip'), {
      ...responseWith(lent()),
      lendsChunks: true,
    })
    const whole = gunzipSync(await read(response.body))
    const [first, last] = [whole[0], whole.at(-1)]
    assert.deepEqual(
      [whole.length, first, whole[10 * 64 * 1024], last],
      [50 * 64 * 1024, 0, 10, 49],
    )
    assert.ok(!response.lendsChunks)
  })

  it('a short stream is not compressed', async () => {
    const response = await sent(requestWith('gzip'), responseWith(pieces(100)))
    assert.equal(response.headers['content-encoding'], undefined)
    assert.deepEqual(await read(response.body), await read(pieces(100)))
  })

  it('an error of the stream reaches its reader', async () => {
    async function* failing(): AsyncGenerator<Chunk> {
      yield* pieces(300)
      throw new Error('cut off')
    }
    const { body } = await sent(requestWith('gzip'), responseWith(failing()))
    await assert.rejects(read(body), /cut off/)
    await assert.rejects(
      async () => sent(requestWith('gzip'), responseWith(failingAtOnce())),
      /before it began/,
    )
  })

  // biome-ignore lint/correctness/useYield: it fails before its first chunk
  async function* failingAtOnce(): AsyncGenerator<Chunk> {
    throw new Error('before it began')
  }

  it('a reader that stops early ends the stream', async () => {
    const ended = Promise.withResolvers<void>()
    async function* endless(): AsyncGenerator<Chunk> {
      try {
        for (;;) yield* pieces(100)
      } finally {
        ended.resolve()
      }
    }
    const { body } = await sent(requestWith('gzip'), responseWith(endless()))
    for await (const _ of body as AsyncIterable<Chunk>) break
    await ended.promise
  })

  it('a stream is read no faster than its reader consumes it', async () => {
    let taken = 0
    async function* counted(): AsyncGenerator<Chunk> {
      for (;;) {
        taken += 1
        yield randomBytes(64 * 1024)
      }
    }
    const { body } = await sent(requestWith('gzip'), responseWith(counted()))
    assert.equal(taken, 3)
    const chunks = (body as AsyncIterable<Chunk>)[Symbol.asyncIterator]()
    await chunks.next()
    const takenAfterOne = taken
    for (let tick = 0; tick < 200; tick++) await new Promise(setImmediate)
    assert.ok(taken < takenAfterOne + 10, `${taken} pieces were read ahead`)
    await chunks.return?.()
  })
})
