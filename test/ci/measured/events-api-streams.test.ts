import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Stream } from 'node:http2'
import { beforeEach, describe, test } from 'node:test'
import { lateResponse } from '../../../src/endpoints/serve.ts'
import type { Chunk, Handler, Response } from '../../../src/http/exchange.ts'
import { pause } from '../../../src/lib/abort.ts'
import { type EventApiUnderTest, pathOf, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { openSession, startRequest } from '../../support/http-client.ts'
import { startListener, startPlainListener, type TestListener } from '../../support/listener.ts'
import { openPlain } from '../../support/raw-http1.ts'
import { makeEvent, type WatchFrame } from '../../support/wire-event.ts'

const EVENTS = 20_000
const headers = { authorization: 'Bearer x' }
const note = 'x'.repeat(900)
/** The socket buffers of both ends of a connection on this host, plus some chunks of the server. */
const heldBytesMax = 12 * 1024 * 1024

/** Counts the bytes that streams have produced, whether or not the client read them. */
class Produced {
  bytes = 0
  open = 0

  counting(handler: Handler): Handler {
    return async (request) => {
      const response = await handler(request)
      const { body } = response
      if (typeof body === 'string' || body instanceof Uint8Array) return response
      return { ...response, body: this.#counted(body) }
    }
  }

  /** Waits until no more bytes are produced. */
  async settled(): Promise<number> {
    let before = -1
    while (this.bytes !== before || this.bytes === 0) {
      before = this.bytes
      await pause(100)
    }
    return before
  }

  async *#counted(body: Exclude<Response['body'], Chunk>): AsyncGenerator<Chunk> {
    this.open += 1
    try {
      for await (const chunk of body) {
        this.bytes += chunk.length
        yield chunk
      }
    } finally {
      this.open -= 1
    }
  }
}

describe('responses to clients that read slowly', () => {
  let api: EventApiUnderTest
  let listener: TestListener
  let plain: TestListener
  /** Reset for each test. */
  let produced = new Produced()

  withEventApi({
    options: {
      memoryBounds: { statesMax: 256, stateAgeMsMax: 2_000, stateBytesMax: 128 * 1024 * 1024 },
    },
    begin: async (started) => {
      api = started
      await api.fill('many', EVENTS, () => ({ note }))
      const handler: Handler = (request) => produced.counting(api.handler)(request)
      listener = await startListener(handler, { lateResponse })
      plain = await startPlainListener(handler, { lateResponse })
    },
    end: async () => {
      await listener[Symbol.asyncDispose]()
      await plain[Symbol.asyncDispose]()
    },
  })

  beforeEach(() => {
    produced = new Produced()
  })

  test('a list is produced as the client reads it over HTTP/2, and is complete', async () => {
    const session = await openSession(listener.port)
    const stream = startRequest(session, { path: pathOf(''), headers })
    await once(stream, 'response')
    assert.ok((await produced.settled()) < 4 * 1024 * 1024, `${produced.bytes} bytes`)
    const list = JSON.parse((await bytesOf(stream)).toString())
    session.destroy()
    assert.equal(list.items.length, EVENTS)
    assert.ok(produced.bytes > 20 * 1024 * 1024)
    assert.equal(produced.open, 0)
  })

  test('a list is produced as the client reads it over HTTP/1.1, and is complete', async () => {
    const socket = await openPlain(plain.port)
    socket.pause()
    socket.write(`GET ${pathOf('many')} HTTP/1.0\r\nauthorization: Bearer x\r\n\r\n`)
    assert.ok((await produced.settled()) < heldBytesMax, `${produced.bytes} bytes`)
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const list = JSON.parse(body.slice(body.indexOf('\r\n\r\n')))
    assert.equal(list.items.length, EVENTS)
  })

  test('clients that disconnect in the middle of a list leave nothing behind', async () => {
    const session = await openSession(listener.port)
    const streams = Array.from({ length: 20 }, () =>
      startRequest(session, { path: pathOf('many'), headers }),
    )
    await Promise.all(streams.map((stream) => once(stream, 'response')))
    await produced.settled()
    assert.equal(produced.open, 20)
    for (const stream of streams.slice(0, 10)) stream.close(8)
    await eventually('half have gone', () => produced.open === 10)
    session.destroy()
    await eventually('all have gone', () => produced.open === 0)
    await eventually('no snapshot is kept', async () => {
      const body = makeEvent('other', `e-${performance.now()}`.replace('.', '-'))
      await api.call({ method: 'POST', at: 'other', body })
      return api.storage.stats().statesKept === 0
    })
    assert.deepEqual(listener.bugs, [])
  })

  test('a watcher that does not read costs at most its flow window, and misses nothing', async () => {
    const count = 3_000
    const { json } = await api.call({ at: 'watched' })
    const path = `${pathOf('watched')}?watch=1&resourceVersion=${json.metadata.resourceVersion}`
    const session = await openSession(listener.port)
    const stalled = startRequest(session, { path, headers })
    await once(stalled, 'response')
    await api.fill('watched', count, () => ({ note }))
    assert.ok((await produced.settled()) < 2 * 1024 * 1024, `${produced.bytes} bytes`)
    const frames = await framesOf(stalled, count)
    session.destroy()
    const versions = frames.map(({ object }) => Number(object.metadata.resourceVersion))
    assert.deepEqual(
      versions,
      versions.toSorted((one, other) => one - other),
    )
    assert.equal(new Set(frames.map(({ object }) => object.metadata.name)).size, count)
    await eventually('it has gone', () => produced.open === 0)
  })

  test('the initial events of a watch are produced as the client reads them', async () => {
    const session = await openSession(listener.port)
    const stream = startRequest(session, { path: `${pathOf('many')}?watch=1`, headers })
    await once(stream, 'response')
    assert.ok((await produced.settled()) < 4 * 1024 * 1024, `${produced.bytes} bytes`)
    const frames = await framesOf(stream, EVENTS)
    session.destroy()
    assert.ok(frames.every(({ type }) => type === 'ADDED'))
  })

  test('watches end normally at shutdown', async () => {
    await using going = await startListener(produced.counting(api.handler))
    const session = await openSession(going.port)
    const query = '?watch=1&resourceVersion='
    const { json } = await api.call({ at: 'gone' })
    const stream = startRequest(session, {
      path: `${pathOf('gone')}${query}${json.metadata.resourceVersion}`,
      headers,
    })
    await once(stream, 'response')
    const reading = bytesOf(stream)
    await api.call({ method: 'POST', at: 'gone', body: makeEvent('gone', 'e') })
    await eventually('the change is sent', () => produced.bytes > 0)
    going.listener.stopAccepting()
    await going.listener.endLongRequests(2_000)
    const text = (await reading).toString()
    assert.equal(stream.rstCode, 0)
    assert.deepEqual(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).type),
      ['ADDED'],
    )
    assert.deepEqual(going.bugs, [])
    session.destroy()
  })
})

async function bytesOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The first frames of a watch, which is then closed. */
async function framesOf(stream: ClientHttp2Stream, count: number): Promise<readonly WatchFrame[]> {
  const frames: WatchFrame[] = []
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) frames.push(JSON.parse(line))
    if (frames.length >= count) break
  }
  return frames
}
