import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ExchangeError, Handler } from '../../../src/http/exchange.ts'
import { DEFAULT_LIMITS } from '../../../src/http/limits.ts'
import { startBystander } from '../../support/bystander.ts'
import { eventually } from '../../support/eventually.ts'
import type { FloodReport } from '../../support/flooder.ts'
import { FLOOD_KINDS } from '../../support/flooder.ts'
import { openClient, openSession, PROTOCOLS, requestOn } from '../../support/http-client.ts'
import type { TestListener } from '../../support/listener.ts'
import { startListener, text } from '../../support/listener.ts'
import { openTls, RawHttp1, requestHead } from '../../support/raw-http1.ts'
import {
  FLAG,
  FRAME,
  frame,
  getFrame,
  headerBlock,
  longField,
  postFrame,
  RawHttp2,
  requestFields,
  resetFrame,
} from '../../support/raw-http2.ts'
import { Stopwatch } from '../../support/stopwatch.ts'

const MIB = 1024 * 1024
const ok: Handler = async () => text(200, 'ok')

/** Reads the body; the response says how that ended. */
const reading: Handler = async (request) => {
  try {
    return text(200, String((await request.body()).length))
  } catch (error) {
    return text(413, (error as ExchangeError).kind)
  }
}

/** Counts requests and how many are in progress; each ends when `wait` resolves. */
class Counted {
  calls = 0
  inProgress = 0
  mostInProgress = 0
  readonly handler: Handler

  constructor(wait: (request: Parameters<Handler>[0]) => Promise<unknown>) {
    this.handler = async (request) => {
      this.calls += 1
      this.inProgress += 1
      this.mostInProgress = Math.max(this.mostInProgress, this.inProgress)
      await wait(request)
      this.inProgress -= 1
      return text(200, 'ok')
    }
  }
}

test('the default limits are the documented ones', () => {
  assert.equal(DEFAULT_LIMITS.headersTimeoutMs, 32_000)
  assert.equal(DEFAULT_LIMITS.idleTimeoutMs, 90_000)
  assert.equal(DEFAULT_LIMITS.requestTimeoutMs, 60_000)
  assert.equal(DEFAULT_LIMITS.streamsMax, 100)
  assert.equal(DEFAULT_LIMITS.headerBytesMax, 128 * 1024)
  assert.equal(DEFAULT_LIMITS.bodyBytesMax, MIB)
})

describe('slow and silent clients', { concurrency: true }, () => {
  const limits = { headersTimeoutMs: 1000, idleTimeoutMs: 2000, handshakeTimeoutMs: 1000 }
  /**
   * Connections are checked once a second, and one that the client does not close gets another
   * second, so a connection may be cut that much later, and a little.
   */
  const slackMs = 3500

  async function assertCut(closed: Promise<void>, limitMs: number): Promise<void> {
    const startedAt = performance.now()
    const watch = new Stopwatch()
    const isClosed = await Promise.race([
      closed.then(() => true),
      sleep(2 * (limitMs + slackMs), false),
    ])
    const tookMs = performance.now() - startedAt
    assert.ok(isClosed, `still open after ${tookMs} ms`)
    assert.ok(tookMs > limitMs * 0.9, `cut after only ${tookMs} ms`)
    assert.ok(watch.ms < limitMs + slackMs, `cut after ${tookMs} ms`)
  }

  async function assertNoneLeft(server: TestListener): Promise<void> {
    await eventually('the connection is closed', () => server.listener.connectionCount === 0, 8000)
  }

  test('h1: headers that arrive byte by byte are cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp1.open(server.port)
    const drip = dripping(requestHead({ headers: { 'x-long': 'x'.repeat(1000) } }), (byte) =>
      client.send(byte),
    )
    await assertCut(client.closed, limits.headersTimeoutMs)
    drip.stop()
    await assertNoneLeft(server)
  })

  test('h1: slow headers of a second request are cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp1.open(server.port)
    assert.equal((await client.request({})).status, 200)
    const drip = dripping(requestHead({ headers: { 'x-long': 'x'.repeat(1000) } }), (byte) =>
      client.send(byte),
    )
    await assertCut(client.closed, limits.headersTimeoutMs)
    drip.stop()
  })

  test('h1: a connection without a byte is cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp1.open(server.port)
    await assertCut(client.closed, limits.headersTimeoutMs)
    await assertNoneLeft(server)
  })

  test('h2: a connection without a byte is cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp2.open(server.port, { preface: false })
    await assertCut(client.closed, limits.headersTimeoutMs)
    await assertNoneLeft(server)
  })

  test('h2: a connection preface and nothing else is cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp2.open(server.port)
    await assertCut(client.closed, limits.headersTimeoutMs)
    await assertNoneLeft(server)
  })

  test('h2: headers that never end are cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp2.open(server.port)
    await client.settled()
    const block = headerBlock(requestFields('GET', '/'))
    client.send(frame(FRAME.headers, FLAG.endStream, 1, block))
    await assertCut(client.closed, limits.headersTimeoutMs)
    await assertNoneLeft(server)
  })

  test('h2: headers that arrive byte by byte are cut at the headers timeout', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp2.open(server.port)
    await client.settled()
    const block = headerBlock({ ...requestFields('GET', '/'), 'x-long': 'x'.repeat(1000) })
    const bytes = frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, 1, block)
    const drip = dripping(bytes, (byte) => client.send(byte))
    await assertCut(client.closed, limits.headersTimeoutMs)
    drip.stop()
    await assertNoneLeft(server)
  })

  for (const protocol of PROTOCOLS) {
    test(`${protocol}: a client that never closes its own side is cut all the same`, async () => {
      await using server = await startListener(ok, { limits })
      const ALPNProtocols = [protocol === 'h2' ? 'h2' : 'http/1.1']
      const halfOpen: object = { allowHalfOpen: true }
      const socket = await openTls(server.port, { ALPNProtocols, ...halfOpen })
      if (protocol === 'h2') socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
      socket.resume()
      await assertNoneLeft(server)
      socket.destroy()
    })
  }

  test('a handshake without progress is cut at the handshake timeout', async () => {
    await using server = await startListener(ok, { limits })
    for (const bytes of ['', '\x16\x03\x01\x02\x00\x01']) {
      const socket = connectPlain({ host: '127.0.0.1', port: server.port })
      socket.on('error', () => {})
      socket.resume()
      if (bytes !== '') socket.write(bytes, 'latin1')
      await assertCut(
        new Promise((resolve) => socket.once('close', () => resolve())),
        limits.handshakeTimeoutMs,
      )
    }
    await assertNoneLeft(server)
  })

  test('h1: an idle connection is closed at the idle timeout and not before', async () => {
    await using server = await startListener(ok, { limits })
    const client = await RawHttp1.open(server.port)
    assert.equal((await client.request({})).status, 200)
    await sleep(1000)
    assert.equal((await client.request({})).status, 200)
    await assertCut(client.closed, limits.idleTimeoutMs)
    await assertNoneLeft(server)
  })

  test('h2: an idle connection is closed at the idle timeout and not before', async () => {
    await using server = await startListener(ok, { limits })
    const session = await openSession(server.port)
    await requestOn(session, {})
    await sleep(1000)
    await requestOn(session, {})
    await assertCut(
      new Promise((resolve) => session.once('close', () => resolve())),
      limits.idleTimeoutMs,
    )
    await assertNoneLeft(server)
  })

  for (const protocol of PROTOCOLS) {
    test(`${protocol}: a long response without data does not make a connection idle`, async () => {
      const gate = Promise.withResolvers<void>()
      await using server = await startListener(
        async () => ({
          status: 200,
          headers: {},
          longRunning: true,
          body: (async function* () {
            yield 'first'
            await gate.promise
            yield 'second'
          })(),
        }),
        { limits: { ...limits, requestTimeoutMs: 1500 } },
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      await answer.read()
      await sleep(limits.idleTimeoutMs + slackMs)
      gate.resolve()
      assert.equal((await answer.read())?.toString(), 'second')
      assert.equal(await answer.read(), undefined)
    })

    test(`${protocol}: a request whose body never arrives gets the timeout response`, async () => {
      const kinds: string[] = []
      await using server = await startListener(
        async (request) => {
          const answer = await reading(request)
          kinds.push(String(answer.body))
          return answer
        },
        { limits: { ...limits, headersTimeoutMs: 1000, requestTimeoutMs: 1500 } },
      )
      const startedAt = performance.now()
      if (protocol === 'h1') {
        const client = await RawHttp1.open(server.port)
        client.send(requestHead({ method: 'POST', headers: { 'content-length': '1000' } }))
        const drip = dripping('x'.repeat(500), (byte) => client.send(byte))
        const answer = await client.readAnswer('POST')
        assert.equal(answer.status, 504)
        assert.ok(answer.isWhole)
        await client.closed
        drip.stop()
      } else {
        const client = await RawHttp2.open(server.port)
        client.send(postFrame(1))
        const drip = dripping('x'.repeat(500), (byte) =>
          client.send(frame(FRAME.data, 0, 1, Buffer.from(byte))),
        )
        assert.equal((await client.answer(1))?.toString(), 'too late')
        await client.find((one) => one.stream === 1 && one.type === FRAME.rstStream)
        drip.stop()
        client.send(postFrame(3), frame(FRAME.data, FLAG.endStream, 3, Buffer.from('abc')))
        assert.equal((await client.answer(3))?.toString(), '3')
        client.close()
      }
      assert.ok(performance.now() - startedAt < 4000)
      assert.equal(kinds[0], 'timeout')
    })
  }
})

describe('oversized and malformed requests', () => {
  test('a query of a million bytes is rejected unparsed, and does not delay other requests', async () => {
    await using server = await startListener(async (request) => text(200, `${request.query.size}`))
    using honest = await openClient('h1', server.port)
    for (const [query, status] of [
      ['a&'.repeat(400_000), 431],
      ['a&'.repeat(60_000), 414],
      ['x'.repeat(70_000), 414],
      ['a=1&'.repeat(1_001), 414],
    ] as const) {
      using client = await openClient('h1', server.port)
      const startedAt = performance.now()
      const [answer, beside] = await Promise.all([
        client.request({ path: `/?${query}` }),
        honest.request({ path: '/?a=1' }),
      ])
      assert.equal(answer.status, status)
      assert.equal(beside.status, 200)
      assert.ok(performance.now() - startedAt < 1000, `${performance.now() - startedAt} ms`)
    }
    const fits = await honest.request({ path: `/?${'a=1&'.repeat(999)}b=2` })
    assert.equal(fits.body.toString(), '1000')
  })

  for (const protocol of PROTOCOLS) {
    test(`${protocol}: a path of more than 8 KiB is rejected before the handler is called`, async () => {
      const seen: string[] = []
      await using server = await startListener(async ({ path }) => {
        seen.push(path)
        return text(200, '')
      })
      for (const path of [`/${'eyJ'.repeat(10_000)}`, `/${'a/'.repeat(4096)}`]) {
        using client = await openClient(protocol, server.port)
        assert.equal((await client.request({ path })).status, 414)
      }
      using client = await openClient(protocol, server.port)
      assert.equal((await client.request({ path: `/${'a'.repeat(8191)}?b=c` })).status, 200)
      assert.equal(seen.length, 1)
    })
  }

  let server: TestListener
  before(async () => {
    server = await startListener(reading)
  })
  after(() => server.listener.close())

  async function assertServes(): Promise<void> {
    for (const protocol of PROTOCOLS) {
      using client = await openClient(protocol, server.port)
      assert.equal((await client.request({})).status, 200)
    }
    assert.deepEqual(server.bugs, [])
  }

  test('h1: headers below 128 KiB are accepted, and larger ones get 431', async () => {
    const below = await RawHttp1.open(server.port)
    const large = 'x'.repeat(120 * 1024)
    assert.equal((await below.request({ headers: { 'x-large': large } })).status, 200)
    below.close()
    const above = await RawHttp1.open(server.port)
    const answer = await above.request({ headers: { 'x-large': 'x'.repeat(129 * 1024) } })
    assert.equal(answer.status, 431)
    await above.closed
    await assertServes()
  })

  test('h2: headers of 100 KiB are accepted, and those above 128 KiB are not', async () => {
    const client = await RawHttp2.open(server.port)
    client.send(...longHeaders(1, 100 * 1024))
    assert.equal((await client.answer(1))?.toString(), '0')
    client.send(...longHeaders(3, 129 * 1024))
    assert.equal(await client.answer(3), undefined)
    client.close()
    await assertServes()
  })

  test('h2: the header limit also applies to a client that does not acknowledge our settings', async () => {
    const client = await RawHttp2.open(server.port, { acknowledge: false })
    client.send(...longHeaders(1, 100 * 1024))
    assert.equal((await client.answer(1))?.toString(), '0')
    client.send(...longHeaders(3, 129 * 1024))
    const answer = await client.answer(3)
    assert.match(String(answer), /the headers exceed/)
    await client.closed
    const referring = await RawHttp2.open(server.port, { acknowledge: false })
    referring.send(getFrame(1, '/', longField(3900)))
    assert.equal((await referring.answer(1))?.toString(), '0')
    referring.send(getFrame(3, '/', Buffer.alloc(900, 0x80 | 62)))
    assert.match(String(await referring.answer(3)), /the headers exceed/)
    await referring.closed
    await assertServes()
  })

  test('h2: settings that are never acknowledged end the connection', async () => {
    await using other = await startListener(ok, { limits: { handshakeTimeoutMs: 500 } })
    const [silent, settled] = await Promise.all([
      RawHttp2.open(other.port, { acknowledge: false }),
      RawHttp2.open(other.port),
    ])
    silent.send(getFrame(1))
    assert.equal((await silent.answer(1))?.toString(), 'ok')
    await silent.closed
    const goaway = silent.frames.findLast((one) => one.type === FRAME.goaway)
    assert.equal(goaway?.payload.readUInt32BE(4), 4)
    settled.send(getFrame(1))
    assert.equal((await settled.answer(1))?.toString(), 'ok')
    settled.close()
  })

  test('h2: more than 1000 header fields are rejected', async () => {
    const client = await RawHttp2.open(server.port)
    const fields = requestFields('GET', '/')
    for (let n = 0; n < 1001; n += 1) fields[`x-${n}`] = ''
    client.send(frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, 1, headerBlock(fields)))
    assert.equal(await client.answer(1), undefined)
    client.close()
    await assertServes()
  })

  for (const protocol of PROTOCOLS) {
    test(`${protocol}: a body of 4 MiB is too large, whether announced or not`, async () => {
      const body = Buffer.alloc(4 * MIB)
      for (const isAnnounced of [true, false]) {
        const answer = await (protocol === 'h1'
          ? postHttp1(server.port, body, isAnnounced)
          : postHttp2(server.port, body, isAnnounced))
        assert.deepEqual(answer, { status: 413, body: 'too-large' })
      }
      await assertServes()
    })
  }

  for (const [what, head] of [
    ['both lengths', 'content-length: 3\r\ntransfer-encoding: chunked\r\n'],
    ['two different lengths', 'content-length: 3\r\ncontent-length: 4\r\n'],
    ['an invalid content length', 'content-length: 3x\r\n'],
    ['a negative length', 'content-length: -3\r\n'],
    ['an unknown transfer coding', 'transfer-encoding: chunked, zip\r\n'],
    ['a space before the colon', 'content-length : 3\r\n'],
    ['a folded header', 'x-folded: a\r\n b\r\ncontent-length: 3\r\n'],
    ['a NUL in a header', 'x-nul: a\0b\r\n'],
    ['a second host', 'host: elsewhere\r\ntransfer-encoding: chunked\r\n'],
    ['the same host twice', 'Host: localhost\r\ntransfer-encoding: chunked\r\n'],
  ] as const) {
    test(`h1: ${what} is rejected and the connection closed`, async () => {
      const client = await RawHttp1.open(server.port)
      client.send(`POST / HTTP/1.1\r\nhost: localhost\r\n${head}\r\n3\r\nabc\r\n0\r\n\r\n`)
      const answer = await client.readAnswer()
      assert.equal(answer.status, 400)
      await client.closed
      await assertServes()
    })
  }

  for (const [what, chunks, kind] of [
    ['an invalid chunk size', 'zz\r\nabc\r\n', 'malformed'],
    ['a negative size', '-1\r\nabc\r\n', 'malformed'],
    ['a chunk longer than announced', '1\r\nabc\r\n', 'malformed'],
    ['an endless extension', `3;${'a'.repeat(300_000)}\r\nabc\r\n`, 'too-large'],
  ] as const) {
    for (const readsAtOnce of [true, false]) {
      const when = readsAtOnce ? 'while its body is read' : 'before its body is read'
      test(`h1: ${what} ${when} is reported to the handler, and the connection closed`, async () => {
        await using other = await startListener(async (request) => {
          if (!readsAtOnce) await sleep(100)
          return await reading(request)
        })
        const client = await RawHttp1.open(other.port)
        client.send(requestHead({ method: 'POST', headers: { 'transfer-encoding': 'chunked' } }))
        client.send(chunks)
        const answer = await client.readAnswer()
        assert.deepEqual([answer.status, answer.body.toString(), answer.isWhole], [413, kind, true])
        await client.closed
        assert.deepEqual(other.bugs, [])
        await eventually('the connection is closed', () => other.listener.connectionCount === 0)
      })
    }
  }

  test('h1: a malformed body that the handler does not read does not prevent the response', async () => {
    await using other = await startListener(async () => {
      await sleep(50)
      return text(401, 'who are you')
    })
    const client = await RawHttp1.open(other.port)
    client.send(requestHead({ method: 'POST', headers: { 'transfer-encoding': 'chunked' } }))
    client.send('zz\r\nabc\r\n')
    assert.equal((await client.readAnswer()).body.toString(), 'who are you')
    await client.closed
  })

  test('h1: a request without a host is rejected', async () => {
    const client = await RawHttp1.open(server.port)
    client.send('GET / HTTP/1.1\r\n\r\n')
    assert.equal((await client.readAnswer()).status, 400)
    await assertServes()
  })

  test('h1: bytes that are not HTTP are rejected', async () => {
    const client = await RawHttp1.open(server.port)
    client.send(Buffer.alloc(1000, 0xfe))
    assert.equal((await client.readAnswer()).status, 400)
    await client.closed
    await assertServes()
  })

  for (const upgrade of ['websocket', 'h2c', 'SPDY/3.1']) {
    test(`h1: an upgrade to ${upgrade} is handled like any request`, async () => {
      const client = await RawHttp1.open(server.port)
      const headers = { connection: 'Upgrade', upgrade, 'http2-settings': 'AAMAAABk' }
      const answer = await client.request({ headers })
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.informational, [])
      assert.equal((await client.request({})).status, 200)
      client.close()
    })
  }

  test('h1: CONNECT opens no tunnel', async () => {
    const client = await RawHttp1.open(server.port)
    client.send('CONNECT localhost:22 HTTP/1.1\r\nhost: localhost:22\r\n\r\n')
    assert.equal((await client.readAnswer()).status, 400)
    await client.closed
    await assertServes()
  })

  for (const [what, fields] of [
    ['CONNECT', { ':method': 'CONNECT', ':authority': 'localhost:22' }],
    [
      'extended CONNECT',
      { ...requestFields('CONNECT', '/'), ':protocol': 'websocket' } as Record<string, string>,
    ],
  ] as const) {
    test(`h2: ${what} opens no tunnel`, async () => {
      const client = await RawHttp2.open(server.port)
      client.send(frame(FRAME.headers, FLAG.endHeaders, 1, headerBlock(fields)))
      const answer = await client.find((one) => one.stream === 1 || one.type === FRAME.goaway)
      // Status 200 is the indexed field 8; anything else, or a reset, is a rejection.
      if (answer?.type === FRAME.headers) assert.notEqual(answer.payload[0], 0x88)
      client.close()
      await assertServes()
    })
  }

  for (const [what, trailing] of [
    ['a PING of the wrong length', frame(FRAME.ping, 0, 0, Buffer.alloc(3))],
    ['DATA on no stream', frame(FRAME.data, 0, 0, Buffer.alloc(3))],
    ['an unending header block', frame(FRAME.headers, 0, 3, Buffer.from([0x82]))],
    ['a broken header block', frame(FRAME.headers, FLAG.endHeaders, 3, Buffer.alloc(20, 0xff))],
    ['an impossible window', frame(FRAME.windowUpdate, 0, 0, Buffer.from('7fffffff', 'hex'))],
    ['an oversized frame', Buffer.from('ffffff000000000001', 'hex')],
    ['a GOAWAY', frame(FRAME.goaway, 0, 0, Buffer.alloc(8))],
    ['a GOAWAY with an error', frame(FRAME.goaway, 0, 0, Buffer.from('0000000000000002', 'hex'))],
  ] as const) {
    test(`h2: a request and ${what} in one write do not crash the server`, async () => {
      const client = await RawHttp2.open(server.port, { preface: false })
      client.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(FRAME.settings, 0, 0))
      await sleep(20)
      client.send(getFrame(1), trailing)
      client.send(postFrame(5), trailing)
      await sleep(50)
      client.close()
      await assertServes()
    })
  }

  test('h2: random frames from many clients do not crash the server', async (t) => {
    const seed = Date.now() % 2 ** 31
    t.diagnostic(`seed ${seed}`)
    const random = randomNumbers(seed)
    for (let round = 0; round < 100; round += 1) {
      const client = await RawHttp2.open(server.port)
      client.send(...Array.from({ length: 1 + random(12) }, () => randomFrame(random)))
      if (random(3) === 0) await sleep(random(10))
      client.close()
    }
    await assertServes()
  })

  test('h1: random bytes after a valid beginning do not crash the server', async (t) => {
    const seed = Date.now() % 2 ** 31
    t.diagnostic(`seed ${seed}`)
    const random = randomNumbers(seed)
    for (let round = 0; round < 100; round += 1) {
      const client = await RawHttp1.open(server.port)
      client.send(requestHead({ method: 'POST', headers: { 'transfer-encoding': 'chunked' } }))
      client.send(Buffer.from(Array.from({ length: random(200) }, () => random(256))))
      if (random(3) === 0) await sleep(random(10))
      client.close()
    }
    await assertServes()
  })
})

describe('too many streams on one connection', () => {
  test('of 200 concurrent streams a hundred are handled and the others refused', async () => {
    const gate = Promise.withResolvers<void>()
    const requests = new Counted(() => gate.promise)
    await using server = await startListener(requests.handler)
    const client = await RawHttp2.open(server.port)
    client.send(...Array.from({ length: 200 }, (_, n) => getFrame(2 * n + 1)))
    await eventually('a hundred are in progress', () => requests.inProgress === 100)
    await sleep(200)
    assert.equal(requests.mostInProgress, 100)
    const refused = client.frames.filter((one) => one.type === FRAME.rstStream)
    // Streams are refused one by one, or all at once by the end of the connection.
    if (!client.isClosed) {
      assert.equal(refused.length, 100)
      for (const { payload } of refused) assert.equal(payload.readUInt32BE(), 7)
    }
    gate.resolve()
    if (!client.isClosed) assert.equal((await client.answer(1))?.toString(), 'ok')
    client.close()
  })

  test('a client that has acknowledged the limit and exceeds it is cut', async () => {
    const gate = Promise.withResolvers<void>()
    const requests = new Counted(() => gate.promise)
    await using server = await startListener(requests.handler)
    const client = await RawHttp2.open(server.port)
    await client.settled()
    await sleep(100)
    for (let n = 0; n < 400 && !client.isClosed; n += 1) client.send(getFrame(2 * n + 1))
    await client.closed
    assert.ok(requests.calls <= 100, `${requests.calls} requests were handled`)
    gate.resolve()
    await eventually('the connection is closed', () => server.listener.connectionCount === 0)
  })

  test('requests reset by their client do not accumulate beyond the burst', async () => {
    const requests = new Counted(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
    )
    await using server = await startListener(requests.handler)
    const client = await RawHttp2.open(server.port)
    for (let n = 0; n < 10_000 && !client.isClosed; n += 1) {
      client.send(getFrame(2 * n + 1), resetFrame(2 * n + 1, n % 2 === 0 ? 8 : 0))
      if (n % 100 === 0) await sleep(1)
    }
    await client.closed
    await eventually('none is in progress', () => requests.inProgress === 0)
    assert.ok(
      requests.calls <= DEFAULT_LIMITS.resetBurst + 200,
      `${requests.calls} requests were handled`,
    )
    assert.ok(requests.mostInProgress <= 200, `${requests.mostInProgress} at once`)
  })
})

describe('too many pipelined requests on one HTTP/1.1 connection', () => {
  test('as many pipelined requests as HTTP/2 streams are handled at once, then the connection is cut', async () => {
    const gate = Promise.withResolvers<void>()
    const requests = new Counted(() => gate.promise)
    await using server = await startListener(requests.handler)
    const client = await RawHttp1.open(server.port)
    client.send(requestHead({}).repeat(2000))
    await client.closed
    gate.resolve()
    assert.ok(
      requests.mostInProgress <= DEFAULT_LIMITS.streamsMax,
      `${requests.mostInProgress} at once`,
    )
    await eventually('none is in progress', () => requests.inProgress === 0)
    await eventually('the connection is closed', () => server.listener.connectionCount === 0)
  })

  test('fewer pipelined requests are all handled, in order, however many follow', async () => {
    await using server = await startListener(async (request) => {
      await sleep(1)
      return text(200, request.path)
    })
    const client = await RawHttp1.open(server.port)
    for (let round = 0; round < 5; round += 1) {
      const paths = Array.from({ length: 90 }, (_, n) => `/${round}/${n}`)
      client.send(paths.map((path) => requestHead({ path })).join(''))
      for (const path of paths) assert.equal((await client.readAnswer()).body.toString(), path)
    }
    client.close()
  })
})

describe('floods', () => {
  let server: TestListener
  let heapBefore: number
  let rssBefore: number

  before(async () => {
    server = await startListener(async (request) => {
      if (request.path === '/bystander') return text(200, 'ok')
      return await reading(request)
    })
    // Warms up, so that code that is loaded late does not count as growth.
    const warmUp = await startBystander(server.port)
    await sleep(300)
    await warmUp.stop()
    heapBefore = heapAfterGc()
    rssBefore = process.memoryUsage().rss
  })
  after(() => server.listener.close())

  for (const kind of FLOOD_KINDS) {
    test(`${kind}: the flooding connections are cut, and other clients are served within a second`, async (t) => {
      const bystander = await startBystander(server.port)
      const report = await runFlooder(kind, server.port)
      const seen = await bystander.stop()
      diagnose(t, { ...report, ...seen })
      assert.ok(report.connections > 0)
      assert.equal(report.cut, report.connections, 'some connections were never cut')
      assert.deepEqual(seen.failures, [])
      assert.ok(seen.answers > 20, `only ${seen.answers} answers`)
      assert.ok(seen.slowestMs < 1000, `a response took ${seen.slowestMs} ms`)
    })
  }

  test('leave no connections and little memory behind', async (t) => {
    await eventually('all connections are closed', () => server.listener.connectionCount === 0)
    const heapGrowth = heapAfterGc() - heapBefore
    const rssGrowth = process.memoryUsage().rss - rssBefore
    diagnose(t, { heapGrowthMiB: heapGrowth / MIB, rssGrowthMiB: rssGrowth / MIB })
    assert.ok(heapGrowth < 32 * MIB, `the heap grew by ${heapGrowth}`)
    assert.ok(rssGrowth < 256 * MIB, `memory grew by ${rssGrowth}`)
    assert.deepEqual(server.bugs, [])
  })
})

async function runFlooder(kind: string, port: number): Promise<FloodReport> {
  const script = join(import.meta.dirname, '../../support/flooder.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [script, kind, String(port)], {
    timeout: 20_000,
  })
  return JSON.parse(stdout)
}

function diagnose(t: TestContext, figures: object): void {
  t.diagnostic(JSON.stringify(figures))
}

function heapAfterGc(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

/** Sends one byte every 50 ms. */
function dripping(bytes: string | Buffer, send: (byte: Buffer) => void): { stop(): void } {
  const all = Buffer.from(bytes)
  let at = 0
  const timer = setInterval(() => {
    if (at < all.length) send(all.subarray(at, at + 1))
    at += 1
  }, 50)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}

/** A GET with `length` bytes of headers, a KiB each, in as few frames as possible. */
function longHeaders(stream: number, length: number): readonly Buffer[] {
  const fields = requestFields('GET', '/')
  for (let n = 0; n < length / 1024; n += 1) fields[`x-${n}`] = 'x'.repeat(1024)
  const block = headerBlock(fields)
  const frames: Buffer[] = []
  for (let start = 0; start < block.length; start += 16_384) {
    const isFirst = start === 0
    const isLast = start + 16_384 >= block.length
    const flags = (isFirst ? FLAG.endStream : 0) | (isLast ? FLAG.endHeaders : 0)
    const type = isFirst ? FRAME.headers : FRAME.continuation
    frames.push(frame(type, flags, stream, block.subarray(start, start + 16_384)))
  }
  return frames
}

async function postHttp1(
  port: number,
  body: Buffer,
  isAnnounced: boolean,
): Promise<{ status: number; body: string }> {
  const client = await RawHttp1.open(port)
  const answer = client.readAnswer('POST')
  const headers: Record<string, string> = isAnnounced
    ? { 'content-length': String(body.length) }
    : { 'transfer-encoding': 'chunked' }
  client.send(requestHead({ method: 'POST', headers }))
  if (!isAnnounced) client.send(`${body.length.toString(16)}\r\n`)
  client.send(body)
  const { status, body: received } = await answer
  await client.closed
  return { status, body: received.toString() }
}

async function postHttp2(
  port: number,
  body: Buffer,
  isAnnounced: boolean,
): Promise<{ status: number; body: string }> {
  using client = await openClient('h2', port)
  const headers: Record<string, string> = isAnnounced
    ? { 'content-length': String(body.length) }
    : {}
  const answer = await client.request({ method: 'POST', headers, body })
  assert.ok(answer.isWhole)
  // The error is of one stream, not of the connection.
  assert.equal((await client.request({})).status, 200)
  return { status: answer.status, body: answer.body.toString() }
}

/** A small random generator with a seed, so that a failure can be repeated. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return Math.floor((state / 0x8000_0000) * below)
  }
}

function randomFrame(random: (below: number) => number): Buffer {
  const stream = [0, 1, 1, 3, 5, 2][random(6)] ?? 0
  switch (random(6)) {
    case 0:
      return getFrame(stream)
    case 1:
      return postFrame(stream)
    case 2:
      return resetFrame(stream, random(14))
    case 3:
      return frame(FRAME.data, random(2), stream, Buffer.alloc(random(300)))
    default:
      return frame(
        random(11),
        random(256),
        stream,
        Buffer.from(Array.from({ length: random(40) }, () => random(256))),
      )
  }
}
