/** How much memory a client can make the HTTP layer hold, and for how long. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, Response } from '../../../src/http/exchange.ts'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../../../src/lib/client-memory/ledger.ts'
import type { Pull } from '../../../src/lib/pull.ts'
import { eventually } from '../../support/eventually.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { startListener, text } from '../../support/listener.ts'
import { RawHttp1 } from '../../support/raw-http1.ts'
import {
  FRAME,
  frame,
  getFrame,
  headerBlock,
  longField,
  RawHttp2,
} from '../../support/raw-http2.ts'

/** SETTINGS_INITIAL_WINDOW_SIZE of 0: not one byte of a body may be sent. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
/** An indexed field: repeats the entry of the dynamic table. */
const SAME_AGAIN = Buffer.from([0x80 | 62])
const STALLED_MS = 500

async function openShut(port: number): Promise<RawHttp2> {
  const client = await RawHttp2.open(port)
  client.send(NO_WINDOW)
  await client.settled()
  return client
}

describe('a client that does not read', () => {
  test('a client that does not read over HTTP/2 loses its streams and then the connection', async () => {
    const ledger = new MemoryLedger()
    await using server = await startListener(async () => text(403, 'no'.repeat(100)), {
      limits: { stalledTimeoutMs: STALLED_MS },
      ledger,
    })
    const client = await openShut(server.port)
    client.send(...Array.from({ length: 20 }, (_, n) => getFrame(1 + 2 * n)))
    await eventually('all have their response', () => ledger.held.response === 20 * 200)
    await client.closed
    assert.equal(client.frames.filter(({ type }) => type === FRAME.rstStream).length, 20)
    await eventually('nothing is held', () => ledger.totalBytes === 0)
  })

  test('a watch with unsent data is cut, and one without stays', async () => {
    const ended: string[] = []
    await using server = await startListener(
      async ({ path }): Promise<Response> => ({
        status: 200,
        headers: {},
        longRunning: true,
        body: (async function* () {
          if (path === '/news') yield 'something'
          await sleep(60_000, undefined, { ref: false })
        })(),
        onEnd: () => ended.push(path),
      }),
      { limits: { stalledTimeoutMs: STALLED_MS } },
    )
    const quiet = await openShut(server.port)
    quiet.send(getFrame(1, '/quiet'))
    const news = await openShut(server.port)
    news.send(getFrame(1, '/news'))
    await news.closed
    assert.deepEqual(ended, ['/news'])
    assert.equal(quiet.isClosed, false)
    quiet.close()
  })

  test('a client that does not read over HTTP/1.1 loses its connection', async () => {
    let isOver = false
    await using server = await startListener(
      async () => ({
        ...text(200, 'x'.repeat(64 * 1024 * 1024)),
        onEnd: () => {
          isOver = true
        },
      }),
      { limits: { stalledTimeoutMs: STALLED_MS } },
    )
    const client = await RawHttp1.open(server.port)
    client.socket.pause()
    client.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await eventually('the response is aborted', () => isOver)
    client.close()
  })

  test('a client is not cut because this process was stopped for a while', async () => {
    let stoppedMs = 0
    const clock = { now: () => performance.now() + stoppedMs }
    let isOver = false
    await using server = await startListener(
      async () => ({
        ...text(200, 'slow'),
        onEnd: () => {
          isOver = true
        },
      }),
      { limits: { stalledTimeoutMs: 60_000 }, clock },
    )
    const client = await openShut(server.port)
    client.send(getFrame(1))
    for (let stops = 0; stops < 3; stops++) {
      await sleep(1500)
      stoppedMs += 70_000
    }
    await sleep(1500)
    assert.equal(isOver, false)
    client.close()
  })

  for (const protocol of PROTOCOLS) {
    test(`a client is not cut as long as it reads, however slowly, over ${protocol}`, async () => {
      const body = Buffer.alloc(6 * 1024 * 1024)
      await using server = await startListener(
        async () => ({
          status: 200,
          headers: {},
          body: (async function* () {
            yield body
          })(),
        }),
        { limits: { stalledTimeoutMs: STALLED_MS } },
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      let length = 0
      for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
        length += piece.length
        // Three seconds in all, six times the timeout of a stalled client.
        await sleep((3000 * piece.length) / body.length)
      }
      assert.equal(length, body.length)
    })
  }
})

describe('a client that disconnects', () => {
  for (const protocol of PROTOCOLS) {
    test(`a client that disconnects is charged for its request until the handler ends, over ${protocol}`, async () => {
      const ledger = new MemoryLedger()
      const { promise: worked, resolve: work } = Promise.withResolvers<void>()
      let signal: AbortSignal | undefined
      await using server = await startListener(
        async (request) => {
          signal = request.signal
          await request.body()
          await worked
          return text(200, 'done')
        },
        { ledger },
      )
      const client = await openClient(protocol, server.port)
      const headers = { 'content-length': '500000' }
      client.request({ method: 'POST', headers, body: Buffer.alloc(500_000) }).catch(() => {})
      await eventually('the body is read', () => ledger.held.body >= 500_000)
      client[Symbol.dispose]()
      await eventually('the client is disconnected', () => signal?.aborted === true)
      assert.ok(ledger.held.body >= 500_000)
      work()
      await eventually('nothing is held', () => ledger.totalBytes === 0)
    })
  }
})

describe('the headers of a request', () => {
  for (const protocol of PROTOCOLS) {
    test(`the headers of a request are freed when its response begins, over ${protocol}`, async () => {
      const ledger = new MemoryLedger()
      let seen: Request | undefined
      const held: number[] = []
      await using server = await startListener(
        async (request): Promise<Response> => {
          seen = request
          held.push(ledger.held.headers)
          assert.equal(request.headers['x-long']?.length, 10_000)
          assert.equal(request.query.get('q')?.length, 10_000)
          request.narrow?.()
          held.push(ledger.held.headers)
          assert.equal(request.headers['x-long'], undefined)
          assert.equal(request.headers['accept'], 'text/plain')
          assert.equal(request.query.get('q')?.length, 10_000)
          return {
            status: 200,
            headers: {},
            longRunning: true,
            body: (async function* () {
              yield 'begun'
              await sleep(60_000, undefined, { ref: false })
            })(),
          }
        },
        { ledger },
      )
      using client = await openClient(protocol, server.port)
      const headers = { 'x-long': 'x'.repeat(10_000), accept: 'text/plain' }
      const answer = await client.open({ path: `/path?q=${'q'.repeat(10_000)}`, headers })
      await answer.read()
      assert.deepEqual(seen?.headers, {})
      assert.deepEqual(seen?.rawHeaders, [])
      assert.equal(seen?.query.size, 0)
      assert.equal(seen?.path, '/path')
      const [all = 0, narrowed = 0] = held
      assert.ok(all > 40_000 && narrowed < all - 9000, `${all}, ${narrowed}`)
      assert.equal(ledger.held.headers, 0)
    })
  }

  test('headers count by their decoded length, however short they are on the wire: 431', async () => {
    await using server = await startListener(async () => text(200, 'fine'))
    const client = await RawHttp2.open(server.port)
    await client.settled()
    const accept = Buffer.concat([Buffer.from([0x40, 6]), Buffer.from('accept'), length(4000)])
    const first = Buffer.concat([accept, Buffer.from('v'.repeat(4000))])
    client.send(getFrame(1, '/', first))
    assert.equal((await client.answer(1))?.toString(), 'fine')
    client.send(getFrame(3, '/', Buffer.concat([SAME_AGAIN, SAME_AGAIN, SAME_AGAIN])))
    assert.match(String(await client.answer(3)), /headers exceed 8192 bytes in total: accept/)
    await client.closed
  })

  test('a host that exceeds its maximum length gets 431', async () => {
    await using server = await startListener(async () => text(200, 'fine'))
    const client = await RawHttp2.open(server.port)
    await client.settled()
    const block = headerBlock({
      ':method': 'GET',
      ':scheme': 'https',
      ':path': '/',
      ':authority': 'h'.repeat(2000),
    })
    client.send(frame(FRAME.headers, 5, 1, block))
    assert.match(String(await client.answer(1)), /host/)
  })
})

test('a connection of an unauthenticated client is cut when it exceeds its memory limit', async () => {
  const limits = { ...DEFAULT_LEDGER_LIMITS, unauthenticatedConnectionBytes: 200 * 1024 }
  const ledger = new MemoryLedger(limits)
  const { promise, resolve } = Promise.withResolvers<void>()
  await using server = await startListener(() => promise.then(() => text(200, '')), { ledger })
  const client = await RawHttp2.open(server.port)
  await client.settled()
  client.send(getFrame(1, '/', longField(3000)))
  client.send(...Array.from({ length: 5 }, (_, n) => getFrame(3 + 2 * n, '/', SAME_AGAIN)))
  await eventually('six are held', () => ledger.held.request === 6 * 16 * 1024)
  assert.equal(client.isClosed, false)
  client.send(...Array.from({ length: 10 }, (_, n) => getFrame(13 + 2 * n, '/', SAME_AGAIN)))
  await client.closed
  assert.equal(ledger.refused.connection > 0, true)
  resolve()
  await eventually('nothing is held', () => ledger.totalBytes === 0)
})

test('a response without a body is sent to a client with a window of 0, and ends', async () => {
  let ended = 0
  await using server = await startListener(async () => ({
    ...text(429, ''),
    onEnd: () => {
      ended += 1
    },
  }))
  const client = await openShut(server.port)
  client.send(getFrame(1), getFrame(3))
  await eventually('both are over', () => ended === 2)
  assert.equal(client.isClosed, false)
  client.close()
})

test('a body that exceeds the memory limit of its user gets 429', async () => {
  const ledger = new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, userBytes: 100 * 1024 })
  await using server = await startListener(
    async (request) => {
      request.memory?.own('ann')
      return request.body().then(
        (body) => text(200, String(body.length)),
        (error) => text(429, error.kind),
      )
    },
    { ledger },
  )
  using client = await openClient('h2', server.port)
  const small = await client.request({ method: 'POST', body: Buffer.alloc(50_000) })
  assert.equal(small.status, 200)
  const large = await client.request({ method: 'POST', body: Buffer.alloc(150_000) })
  assert.equal(large.status, 429)
  await eventually('nothing is held', () => ledger.totalBytes === 0)
})

describe('a user that exceeds its memory limit', () => {
  const ledgerLimits = { ...DEFAULT_LEDGER_LIMITS, userBytes: 200 * 1024 }

  function answerTo({ path, method }: Request): Response {
    if (path === '/401') return text(401, 'who?')
    if (path === '/text') return text(method === 'POST' ? 201 : 200, 'x'.repeat(30_000))
    return {
      status: 200,
      headers: {},
      longRunning: path === '/watch',
      body: (async function* () {
        yield 'begun'
        await sleep(60_000, undefined, { ref: false })
      })(),
    }
  }

  /** The header `x-user` names the user; `/hold` is a stream that does not end. */
  function startShared(ledger: MemoryLedger): ReturnType<typeof startListener> {
    return startListener(
      async (request): Promise<Response> => {
        const { 'x-user': user } = request.headers
        if (user !== undefined && request.memory?.own(user) !== undefined) {
          return text(429, 'own')
        }
        return answerTo(request)
      },
      { ledger },
    )
  }

  const ann = { 'x-user': 'ann' }
  const bob = { 'x-user': 'bob' }

  test('a user over its limit gets 429 before a read begins, and the result of a write', async () => {
    const ledger = new MemoryLedger(ledgerLimits)
    await using server = await startShared(ledger)
    using client = await openClient('h2', server.port)
    for (let n = 0; n < 2; n++) await client.open({ path: '/hold', headers: ann })
    const held = ledger.held.response
    for (const path of ['/hold', '/text']) {
      const read = await client.request({ path, headers: ann })
      assert.deepEqual(
        [read.status, read.headers['retry-after'], read.isWhole],
        [429, '10', true],
        path,
      )
    }
    const written = await client.request({
      method: 'POST',
      path: '/text',
      headers: ann,
      body: Buffer.from('{}'),
    })
    assert.deepEqual([written.status, written.body.length, written.isWhole], [201, 30_000, true])
    await eventually('only the earlier bytes are held', () => ledger.held.response === held)
  })

  test('a user over its limit does not end the watches of others on the same connection', async () => {
    const ledger = new MemoryLedger({
      ...ledgerLimits,
      connectionBytes: 100 * 1024,
      unauthenticatedBytes: 120 * 1024,
    })
    await using server = await startShared(ledger)
    using client = await openClient('h2', server.port)
    const watch = await client.open({ path: '/watch', headers: bob })
    for (let n = 0; n < 2; n++) await client.open({ path: '/hold', headers: ann })
    assert.equal((await client.request({ path: '/hold', headers: ann })).status, 429)
    // Unauthenticated requests, until the connection has no more memory for those.
    assert.equal((await client.open({ path: '/hold' })).status, 200)
    const refused = await client.request({ path: '/hold' })
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '10'])
    assert.equal((await client.request({ path: '/text', headers: bob })).status, 200)
    assert.equal(String(await watch.read()), 'begun')
    assert.equal(ledger.held.watch > 0, true)
  })

  test('the total limit does not end connections of other users', async () => {
    const ledger = new MemoryLedger({ ...ledgerLimits, totalBytes: 100 * 1024 })
    const large = ledger.connection(() => {}).open(0)
    large.own('ann')
    large.set('response', 150 * 1024)
    await using server = await startShared(ledger)
    using client = await openClient('h2', server.port)
    assert.equal((await client.request({ path: '/401' })).status, 401)
    const refused = await client.request({ path: '/text', headers: bob })
    assert.deepEqual([refused.status, String(refused.body)], [429, 'own'])
    large[Symbol.dispose]()
    assert.equal((await client.request({ path: '/text', headers: bob })).status, 200)
  })
})

test('a watch is charged for its unsent bytes, until they are sent', async () => {
  const ledger = new MemoryLedger()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await using server = await startListener(
    async (request): Promise<Response> => {
      request.memory?.own('ann')
      return {
        status: 200,
        headers: {},
        longRunning: true,
        body: (async function* () {
          await released
          yield 'n'.repeat(3000)
          await sleep(60_000, undefined, { ref: false })
        })(),
      }
    },
    { ledger },
  )
  const client = await openShut(server.port)
  client.send(getFrame(1))
  await eventually('it waits', () => ledger.held.watch > 0)
  assert.equal(ledger.totalBytes, 0)
  release()
  await eventually('the unsent bytes are charged', () => ledger.heldBy('ann') === 3000)
  client.send(frame(FRAME.windowUpdate, 0, 1, Buffer.from([0, 0, 16, 0])))
  await eventually('it is sent', () => ledger.totalBytes === 0)
  client.close()
})

test('watches with old changes in memory end when their user exceeds its limit', async () => {
  const ledger = new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, userBytes: 1_000_000 })
  const retained = { bytes: 200_000 }
  await using server = await startListener(
    async (request): Promise<Response> => {
      request.memory?.own('ann')
      let isStopped = false
      const body: AsyncIterable<string> & Pull<string> = {
        take: (wake) => {
          setTimeout(wake, 20).unref()
          return undefined
        },
        get isOver() {
          return isStopped
        },
        stop: () => {
          isStopped = true
        },
        get heldBytes() {
          return retained.bytes
        },
        [Symbol.asyncIterator]: () => assert.fail('it is pulled'),
      }
      return { status: 200, headers: {}, longRunning: true, body }
    },
    { ledger },
  )
  const client = await RawHttp2.open(server.port)
  await client.settled()
  client.send(...Array.from({ length: 8 }, (_, n) => getFrame(1 + 2 * n)))
  // 1.6 MB would be held for them: the watches that exceed 1 MB are cut, and no others.
  const resets = (): number => client.frames.filter(({ type }) => type === FRAME.rstStream).length
  await eventually('three are cut', () => resets() === 3)
  await sleep(2500)
  assert.deepEqual([resets(), ledger.heldBy('ann')], [3, 1_000_000])
  client.close()
})

/** The length of a string in HPACK. */
function length(value: number): Buffer {
  const rest = value - 127
  return Buffer.from([127, (rest % 128) | 0x80, Math.floor(rest / 128)])
}
