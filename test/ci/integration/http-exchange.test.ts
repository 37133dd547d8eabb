import assert from 'node:assert/strict'
import { type EventEmitter, once } from 'node:events'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler, Request, Response } from '../../../src/http/exchange.ts'
import { ExchangeError } from '../../../src/http/exchange.ts'
import { eventually } from '../../support/eventually.ts'
import type { Protocol } from '../../support/http-client.ts'
import {
  openClient,
  openSession,
  PROTOCOLS,
  requestOn,
  startRequest,
} from '../../support/http-client.ts'
import type { TestListener } from '../../support/listener.ts'
import { startListener, startPlainListener, text } from '../../support/listener.ts'
import { openTls, RawHttp1, requestHead } from '../../support/raw-http1.ts'
import { FRAME, frame, postFrame, RawHttp2, resetFrame } from '../../support/raw-http2.ts'
import { Stopwatch } from '../../support/stopwatch.ts'

const MIB = 1024 * 1024

/** Returns how the request was parsed. */
const echo: Handler = async (request) => {
  const body = await request.body()
  return {
    status: request.path === '/made' ? 201 : 200,
    headers: { 'content-type': 'application/json', 'x-method': request.method },
    body: JSON.stringify({
      method: request.method,
      path: request.path,
      query: [...request.query],
      marker: request.headers['x-marker'],
      address: request.peer.address,
      isLoopback: request.peer.isLoopback,
      body: body.toString(),
    }),
  }
}

for (const protocol of PROTOCOLS) {
  describe(`an exchange over ${protocol}`, () => {
    let server: TestListener
    before(async () => {
      server = await startListener(echo)
    })
    after(() => server.listener.close())

    test('a GET gets status, headers, length and body', async () => {
      using client = await openClient(protocol, server.port)
      const answer = await client.request({
        path: '/some/path?a=1&b=two%20words&a=3',
        headers: { 'x-marker': 'here' },
      })
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['content-type'], 'application/json')
      assert.equal(answer.headers['x-method'], 'GET')
      assert.equal(answer.headers['content-length'], String(answer.body.length))
      assert.ok(Date.parse(answer.headers['date'] ?? '') > 0)
      assert.deepEqual(JSON.parse(answer.body.toString()), {
        method: 'GET',
        path: '/some/path',
        query: [
          ['a', '1'],
          ['b', 'two words'],
          ['a', '3'],
        ],
        marker: 'here',
        address: '127.0.0.1',
        isLoopback: true,
        body: '',
      })
      assert.ok(answer.isWhole)
    })

    test('a HEAD gets the headers of the GET and no body, and the connection stays open', async () => {
      using client = await openClient(protocol, server.port)
      const head = await client.request({ method: 'HEAD', path: '/x' })
      assert.equal(head.status, 200)
      assert.ok(Number(head.headers['content-length']) > 0)
      assert.equal(head.body.length, 0)
      const next = await client.request({ path: '/y' })
      assert.equal(JSON.parse(next.body.toString()).path, '/y')
    })

    test('a POST delivers its body, also in many chunks', async () => {
      using client = await openClient(protocol, server.port)
      const small = await client.request({ method: 'POST', path: '/made', body: 'hello' })
      assert.equal(small.status, 201)
      assert.equal(JSON.parse(small.body.toString()).body, 'hello')
      const large = 'x'.repeat(MIB)
      const answer = await client.request({ method: 'POST', path: '/made', body: large })
      assert.equal(JSON.parse(answer.body.toString()).body, large)
      assert.ok(answer.isWhole)
    })

    test('a path is decoded once', async () => {
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ path: '/a%20b/%E2%82%AC/%252F?q=%2F' })
      const seen = JSON.parse(answer.body.toString())
      assert.equal(seen.path, '/a b/€/%2F')
      assert.deepEqual(seen.query, [['q', '/']])
    })

    for (const path of ['/%', '/%zz', '/a%C3', '/%ff', '*']) {
      test(`the target ${path} gets 400`, async () => {
        using client = await openClient(protocol, server.port)
        const answer = await client.request({ path, method: path === '*' ? 'OPTIONS' : 'GET' })
        assert.equal(answer.status, 400)
        assert.ok(answer.isWhole)
      })
    }

    test('a malformed escape in the query does not fail the request', async () => {
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ path: '/q?x=%zz&y=%' })
      assert.equal(answer.status, 200)
      assert.deepEqual(JSON.parse(answer.body.toString()).query, [
        ['x', '%zz'],
        ['y', '%'],
      ])
    })
  })

  describe(`responses over ${protocol}`, () => {
    test('an empty body has length 0, and 204 has no length at all', async () => {
      await using server = await startListener(async (request) => ({
        status: request.path === '/204' ? 204 : 200,
        headers: {},
        body: '',
      }))
      using client = await openClient(protocol, server.port)
      const empty = await client.request({ path: '/' })
      assert.equal(empty.headers['content-length'], '0')
      assert.equal(empty.body.length, 0)
      const none = await client.request({ path: '/204' })
      assert.equal(none.status, 204)
      assert.equal(none.headers['content-length'], undefined)
      assert.equal((await client.request({ path: '/' })).status, 200)
    })

    test('a stream arrives chunk by chunk and ends cleanly', async () => {
      const gate = Promise.withResolvers<void>()
      await using server = await startListener(async () =>
        stream(async function* () {
          yield 'one '
          await gate.promise
          yield Buffer.from('two ')
          yield 'thr€€'
        }),
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({ path: '/' })
      assert.equal((await answer.read())?.toString(), 'one ')
      gate.resolve()
      let rest = ''
      for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
        rest += piece.toString()
      }
      assert.equal(rest, 'two thr€€')
      assert.deepEqual(server.bugs, [])
    })

    test('a stream that reuses the buffer of its chunks is sent correctly', async () => {
      const lengths = [10, 300_000, 64 * 1024, 1, 700_000, 20_000, 16 * 1024]
      await using server = await startListener(async () =>
        stream(
          async function* () {
            const room = Buffer.alloc(MIB)
            for (const [index, length] of lengths.entries()) {
              yield room.fill(index + 1).subarray(0, length)
            }
            room.fill(0)
          },
          { lendsChunks: true },
        ),
      )
      using client = await openClient(protocol, server.port)
      const { body } = await client.request({ path: '/' })
      const expected = lengths.map((length, index) => Buffer.alloc(length, index + 1))
      assert.ok(body.equals(Buffer.concat(expected)))
      assert.deepEqual(server.bugs, [])
    })

    test('a HEAD for a stream gets headers and never pulls it', async () => {
      let pulls = 0
      await using server = await startListener(async () =>
        stream(async function* () {
          pulls += 1
          yield 'never'
        }),
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ method: 'HEAD' })
      assert.equal(answer.status, 200)
      assert.equal(pulls, 0)
    })

    test('a client that does not read stops the stream, and other clients are not affected', async () => {
      const chunk = Buffer.alloc(64 * 1024, 'x')
      let pulled = 0
      await using server = await startListener(async (request) =>
        request.path === '/endless'
          ? stream(async function* () {
              for (;;) {
                pulled += chunk.length
                yield chunk
              }
            })
          : text(200, 'ok'),
      )
      const rssBefore = process.memoryUsage().rss
      using lazy = await openUnread(protocol, server.port, '/endless')
      void lazy
      let before = -1
      await eventually('the stream is paused', async () => {
        const isStill = pulled === before && pulled > 0
        before = pulled
        await sleep(200)
        return isStill
      })
      // On HTTP/1.1 the socket buffers of the kernel take a few MiB, on HTTP/2 the flow window
      // limits.
      assert.ok(pulled < 16 * MIB, `${pulled} bytes were pulled for a client that reads nothing`)
      const grown = process.memoryUsage().rss - rssBefore
      assert.ok(grown < 64 * MIB, `memory grew by ${grown}`)

      using other = await openClient(protocol, server.port)
      const startedAt = performance.now()
      for (let i = 0; i < 20; i += 1) assert.equal((await other.request({})).status, 200)
      assert.ok(performance.now() - startedAt < 1000)
      assert.equal(pulled, before)
    })

    test('a slow reader gets every byte in the end', async () => {
      const chunk = Buffer.alloc(256 * 1024, 'y')
      await using server = await startListener(async () =>
        stream(async function* () {
          for (let i = 0; i < 64; i += 1) yield chunk
        }),
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      await sleep(300)
      let length = 0
      for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
        length += piece.length
      }
      assert.equal(length, 64 * chunk.length)
    })

    test('a client that disconnects before the response aborts the signal', async () => {
      const asked = Promise.withResolvers<Request>()
      await using server = await startListener(async (request) => {
        asked.resolve(request)
        await aborted(request.signal)
        return text(200, 'unused')
      })
      const client = await openClient(protocol, server.port)
      client.request({}).catch(() => {})
      const request = await asked.promise
      assert.ok(!request.signal.aborted)
      client[Symbol.dispose]()
      await eventually('the signal aborts', () => request.signal.aborted)
      assert.ok(request.signal.reason instanceof ExchangeError)
      assert.equal(request.signal.reason.kind, 'gone')
      assert.deepEqual(server.bugs, [])
    })

    test('a client that disconnects midway aborts the signal and ends the iterable', async () => {
      const seen: Request[] = []
      let returned = 0
      await using server = await startListener(async (request) => {
        seen.push(request)
        return stream(async function* () {
          try {
            for (;;) {
              yield 'tick\n'
              await sleep(5)
            }
          } finally {
            returned += 1
          }
        })
      })
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      await answer.read()
      answer.leave()
      await eventually('return() is called', () => returned === 1)
      assert.ok(seen[0]?.signal.aborted)
      assert.equal(seen[0]?.signal.reason.kind, 'gone')
      assert.deepEqual(server.bugs, [])
    })

    test('the signal of a watch without changes aborts when the client disconnects', async () => {
      let ended = false
      await using server = await startListener(async (request) =>
        stream(
          async function* () {
            yield 'first\n'
            await aborted(request.signal)
            ended = true
          },
          { longRunning: true },
        ),
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      await answer.read()
      answer.leave()
      await eventually('the iterable ends', () => ended)
    })

    test('a response that was read to its end does not abort the signal', async () => {
      const seen: Request[] = []
      await using server = await startListener(async (request) => {
        seen.push(request)
        void request.signal
        await request.body()
        return text(200, 'ok')
      })
      using client = await openClient(protocol, server.port)
      await client.request({})
      await client.request({ method: 'POST', body: 'read whole' })
      await client.request({})
      await sleep(50)
      assert.deepEqual(
        seen.map(({ signal }) => signal.aborted),
        [false, false, false],
      )
    })

    test('a handler that throws results in a 500 and a report', async () => {
      const mistake = new Error('boom, with a secret')
      await using server = await startListener(async (request) => {
        if (request.path === '/bad') throw mistake
        return text(200, 'ok')
      })
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ path: '/bad' })
      assert.equal(answer.status, 500)
      assert.ok(!answer.body.toString().includes('secret'))
      assert.ok(answer.isWhole)
      assert.deepEqual(server.bugs, [mistake])
      assert.equal((await client.request({ path: '/good' })).status, 200)
    })

    for (const [what, response] of unsendable(protocol)) {
      test(`a response that cannot be sent (${what}) results in a 500 and a report`, async () => {
        await using server = await startListener(async (request) =>
          request.path === '/bad' ? response : text(200, 'ok'),
        )
        using client = await openClient(protocol, server.port)
        const answer = await client.request({ path: '/bad' })
        assert.equal(answer.status, 500)
        assert.equal(server.bugs.length, 1)
        using next = await openClient(protocol, server.port)
        assert.equal((await next.request({ path: '/good' })).status, 200)
      })
    }

    for (const pauseMs of [0, 50]) {
      test(`an iterable that throws ${pauseMs} ms after a chunk cuts the response`, async () => {
        const mistake = new Error('broke midway')
        await using server = await startListener(async () =>
          stream(async function* () {
            yield 'part'
            if (pauseMs > 0) await sleep(pauseMs)
            throw mistake
          }),
        )
        using client = await openClient(protocol, server.port)
        let isWhole = false
        try {
          isWhole = (await client.request({})).isWhole
        } catch {
          // The response may be cut before its head arrived, as long as it does not look
          // complete.
        }
        assert.ok(!isWhole)
        assert.deepEqual(server.bugs, [mistake])
      })
    }

    test('a late handler gets the timeout response sent at the deadline, and its own is dropped', async () => {
      const asked: Request[] = []
      await using server = await startListener(
        async (request) => {
          if (request.path === '/quick') return text(200, 'quick')
          asked.push(request)
          await aborted(request.signal)
          await sleep(100)
          return text(200, 'after the fact')
        },
        { limits: { requestTimeoutMs: 400 }, lateResponse: () => text(504, 'too late') },
      )
      using client = await openClient(protocol, server.port)
      const watch = new Stopwatch()
      const startedAt = performance.now()
      const answer = await client.request({ path: '/slow' })
      const [tookMs, ownMs] = [performance.now() - startedAt, watch.ms]
      assert.equal(answer.status, 504)
      assert.equal(answer.body.toString(), 'too late')
      assert.ok(tookMs > 350 && ownMs < 1500, `answered after ${tookMs} ms`)
      assert.equal(asked[0]?.signal.reason.kind, 'timeout')
      await sleep(150)
      const next = await client.request({ path: '/quick' })
      assert.equal(next.body.toString(), 'quick')
      assert.deepEqual(server.bugs, [])
    })

    test('a timeout response that throws is a reported 500 and does not end the process', async () => {
      const mistake = new Error('no words')
      await using server = await startListener(
        async (request) => {
          await aborted(request.signal)
          await sleep(100)
          return text(200, 'after the fact')
        },
        {
          limits: { requestTimeoutMs: 200 },
          lateResponse: () => {
            throw mistake
          },
        },
      )
      using client = await openClient(protocol, server.port)
      assert.equal((await client.request({})).status, 500)
      assert.deepEqual(server.bugs, [mistake])
    })

    test('a stream that is still running at the deadline is cut', async () => {
      await using server = await startListener(
        async () =>
          stream(async function* () {
            for (;;) {
              yield 'tick\n'
              await sleep(20)
            }
          }),
        { limits: { requestTimeoutMs: 300 } },
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      await assert.rejects(async () => {
        while ((await answer.read()) !== undefined);
      }, /cut|CANCEL|INTERNAL_ERROR/)
    })

    test('a long request whose beginning is not read in time is cut', async () => {
      const ends: string[] = []
      const chunk = Buffer.alloc(64 * 1024)
      await using server = await startListener(
        async ({ signal, path }) => {
          const settling = Promise.withResolvers<void>()
          const body = async function* () {
            if (path === '/settled') settling.resolve()
            while (!signal.aborted) yield chunk
          }
          return {
            ...stream(body, { longRunning: true }),
            settled: settling.promise,
            onEnd: () => ends.push(`${path} ${signal.reason?.kind}`),
          }
        },
        { limits: { requestTimeoutMs: 300 } },
      )
      using client = await openClient(protocol, server.port)
      using other = await openClient(protocol, server.port)
      const settled = await other.open({ path: '/settled' })
      await client.open({ path: '/unread' })
      await eventually('the unread one ends', () => ends.length > 0)
      assert.deepEqual(ends, ['/unread timeout'])
      assert.ok(await settled.read())
      settled.leave()
    })

    test('a long request outlives the deadline and ends cleanly at shutdown', async () => {
      await using server = await startListener(
        async (request) =>
          stream(
            async function* () {
              yield 'first\n'
              while (!request.signal.aborted) {
                await Promise.race([sleep(50), aborted(request.signal)])
                yield 'tick\n'
              }
              yield `last ${request.signal.reason.kind}\n`
            },
            { longRunning: true },
          ),
        { limits: { requestTimeoutMs: 300 } },
      )
      using client = await openClient(protocol, server.port)
      const answer = await client.open({})
      const startedAt = performance.now()
      while (performance.now() - startedAt < 800) assert.ok(await answer.read())
      const watch = new Stopwatch()
      const ended = server.listener.endLongRequests(5000)
      let rest = ''
      for (let piece = await answer.read(); piece !== undefined; piece = await answer.read()) {
        rest += piece.toString()
      }
      assert.match(rest, /last shutdown\n$/)
      await ended
      const tookMs = watch.ms
      assert.ok(tookMs < 1000, `waited ${tookMs} ms for a response that had ended`)
      assert.deepEqual(server.bugs, [])
    })
  })

  describe(`bodies over ${protocol}`, () => {
    const limits = { bodyBytesMax: 100_000 }

    test('100-continue is sent when the handler reads the body, and not before', async () => {
      const gate = Promise.withResolvers<void>()
      await using server = await startListener(async (request) => {
        await gate.promise
        const body = await request.body()
        return text(200, String(body.length))
      })
      const client = await expectClient(protocol, server.port, '/')
      await sleep(150)
      assert.ok(!client.hasContinued())
      gate.resolve()
      await client.continued()
      client.sendBody('hello')
      assert.deepEqual(await client.answer(), { status: 200, body: '5' })
      client.close()
    })

    test('100-continue is never sent for a body that the handler does not read', async () => {
      await using server = await startListener(async () => text(403, 'no'))
      const client = await expectClient(protocol, server.port, '/')
      assert.deepEqual(await client.answer(), { status: 403, body: 'no' })
      assert.ok(!client.hasContinued())
      client.close()
    })

    for (const framing of ['content-length', 'unannounced'] as const) {
      test(`a body at the limit is accepted, and one byte more is too large (${framing})`, async () => {
        const kinds: unknown[] = []
        await using server = await startListener(
          async (request) => {
            try {
              return text(200, String((await request.body()).length))
            } catch (error) {
              kinds.push((error as ExchangeError).kind)
              return text(413, 'too large')
            }
          },
          { limits },
        )
        for (const [length, status] of [
          [100_000, 200],
          [100_001, 413],
        ] as const) {
          const body = Buffer.alloc(length, 'z')
          const answer = await postFramed(protocol, server.port, { body, framing })
          assert.equal(answer.status, status)
          assert.ok(answer.isWhole)
        }
        assert.deepEqual(kinds, ['too-large'])
        assert.deepEqual(server.bugs, [])
      })
    }

    test('body() returns the same bytes to every caller', async () => {
      await using server = await startListener(async (request) => {
        const [one, two] = await Promise.all([request.body(), request.body()])
        return text(200, String(one === two && one === (await request.body())))
      })
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ method: 'POST', body: 'x' })
      assert.equal(answer.body.toString(), 'true')
    })

    test('a body that is read late is still complete', async () => {
      await using server = await startListener(async (request) => {
        await sleep(200)
        return text(200, String((await request.body()).length))
      })
      using client = await openClient(protocol, server.port)
      const answer = await client.request({ method: 'POST', body: 'x'.repeat(50_000) })
      assert.equal(answer.body.toString(), '50000')
    })

    test('a body that breaks off is an error, never a shorter body', async () => {
      const outcomes: string[] = []
      await using server = await startListener(async (request) => {
        outcomes.push(await bodyOutcome(request))
        return text(200, 'ok')
      })
      if (protocol === 'h1') {
        const socket = await openTls(server.port, { ALPNProtocols: ['http/1.1'] })
        socket.end(`${requestHead({ method: 'POST', headers: { 'content-length': '10' } })}12345`)
      } else {
        const client = await RawHttp2.open(server.port)
        client.send(postFrame(1), frame(FRAME.data, 0, 1, Buffer.from('12345')))
        await sleep(100)
        client.close()
      }
      await eventually('the handler gets the error', () => outcomes.length === 1)
      assert.deepEqual(outcomes, ['gone'])
    })

    test('a response arrives completely although the body was not read', async () => {
      const answerBody = 'a'.repeat(200_000)
      await using server = await startListener(async () => text(409, answerBody))
      for (const length of [1000, 200_000, 3 * MIB]) {
        const body = Buffer.alloc(length, 'u')
        const answer = await postFramed(protocol, server.port, { body, framing: 'content-length' })
        assert.equal(answer.status, 409)
        assert.equal(answer.body.length, answerBody.length)
        assert.ok(answer.isWhole)
      }
    })
  })
}

describe('HTTP/1.1 only', () => {
  test('an absolute target counts as its path', async () => {
    await using server = await startListener(echo)
    using client = await openClient('h1', server.port)
    const answer = await client.request({ path: 'https://elsewhere:1/deep/path?x=1' })
    const seen = JSON.parse(answer.body.toString())
    assert.equal(seen.path, '/deep/path')
    assert.deepEqual(seen.query, [['x', '1']])
    const bare = await client.request({ path: 'http://elsewhere?x=1' })
    assert.equal(JSON.parse(bare.body.toString()).path, '/')
  })

  test('a connection is closed after a request whose body was not read', async () => {
    await using server = await startListener(async () => text(409, 'no'))
    const client = await RawHttp1.open(server.port)
    client.send(requestHead({ method: 'POST', headers: { 'content-length': '1000' } }))
    client.send('x'.repeat(10))
    const answer = await client.readAnswer()
    assert.equal(answer.status, 409)
    assert.equal(answer.headers['connection'], 'close')
    await client.closed
  })

  test('a connection is kept after a chunked body that was read', async () => {
    await using server = await startListener(echo)
    const client = await RawHttp1.open(server.port)
    const call = { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }
    client.send(`${requestHead(call)}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`)
    const answer = await client.readAnswer()
    assert.equal(JSON.parse(answer.body.toString()).body, 'abcde')
    assert.notEqual(answer.headers['connection'], 'close')
    assert.equal((await client.request({})).status, 200)
    client.close()
  })

  test('pipelined requests get their responses in order', async () => {
    await using server = await startListener(async (request) => {
      if (request.path === '/1') await sleep(100)
      return text(200, request.path)
    })
    const client = await RawHttp1.open(server.port)
    client.send(['/1', '/2', '/3'].map((path) => requestHead({ path })).join(''))
    for (const path of ['/1', '/2', '/3']) {
      assert.equal((await client.readAnswer()).body.toString(), path)
    }
    client.close()
  })

  test('closeConnection closes the connection after the response', async () => {
    await using server = await startListener(async () => ({
      ...text(401, 'bye'),
      closeConnection: true,
    }))
    const client = await RawHttp1.open(server.port)
    const answer = await client.request({})
    assert.equal(answer.headers['connection'], 'close')
    assert.equal(answer.body.toString(), 'bye')
    await client.closed
  })

  test('the same exchanges work without TLS', async () => {
    await using server = await startPlainListener(echo)
    const client = await RawHttp1.openPlain(server.port)
    const answer = await client.request({ method: 'POST', path: '/made', body: 'plain' })
    assert.equal(answer.status, 201)
    assert.equal(JSON.parse(answer.body.toString()).body, 'plain')
    client.close()
  })
})

describe('HTTP/2 only', () => {
  test('the stream of a request whose body was not read is reset with NO_ERROR, and the connection stays open', async () => {
    await using server = await startListener(async () => text(409, 'no'))
    const client = await RawHttp2.open(server.port)
    client.send(postFrame(1), frame(FRAME.data, 0, 1, Buffer.alloc(1000)))
    const reset = await client.find((one) => one.stream === 1 && one.type === FRAME.rstStream)
    assert.equal(reset?.payload.readUInt32BE(), 0)
    // The end of the response must come before the reset, or the response would count as cut.
    const endAt = client.frames.findIndex((one) => one.stream === 1 && (one.flags & 1) !== 0)
    assert.ok(endAt !== -1 && endAt < client.frames.lastIndexOf(reset ?? assert.fail()))
    assert.ok(!client.isClosed)
    client.send(postFrame(3))
    assert.ok(await client.find((one) => one.stream === 3 && one.type === FRAME.data))
    client.close()
  })

  test('closeConnection ends the session after its streams', async () => {
    await using server = await startListener(async (request) => {
      if (request.path === '/bye') return { ...text(401, 'bye'), closeConnection: true }
      await sleep(200)
      return text(200, 'slow but whole')
    })
    const session = await openSession(server.port)
    const closed = new Promise<void>((resolve) => session.once('close', () => resolve()))
    const slow = requestOn(session, { path: '/slow' })
    assert.equal((await requestOn(session, { path: '/bye' })).body.toString(), 'bye')
    assert.equal((await slow).body.toString(), 'slow but whole')
    await closed
  })

  for (const code of [0, 8]) {
    test(`a stream reset with code ${code} aborts the signal of a waiting response`, async () => {
      const seen: Request[] = []
      await using server = await startListener(async (request) => {
        seen.push(request)
        return stream(
          async function* () {
            yield 'first'
            await aborted(request.signal)
          },
          { longRunning: true },
        )
      })
      const client = await RawHttp2.open(server.port)
      client.send(postFrame(1))
      await client.find((one) => one.stream === 1 && one.type === FRAME.data)
      client.send(resetFrame(1, code))
      await eventually('the signal aborts', () => seen[0]?.signal.aborted === true)
      assert.equal(seen[0]?.signal.reason.kind, 'gone')
      client.close()
    })

    test(`a stream reset with code ${code} amid its body fails the body, and a response to it does no harm`, async () => {
      const outcomes: string[] = []
      await using server = await startListener(async (request) => {
        if (request.path === '/later') await sleep(150)
        outcomes.push(await bodyOutcome(request))
        return text(200, 'ok')
      })
      const client = await RawHttp2.open(server.port)
      for (const [stream, path] of [
        [1, '/now'],
        [3, '/later'],
      ] as const) {
        client.send(postFrame(stream, path), frame(FRAME.data, 0, stream, Buffer.from('12345')))
        await sleep(50)
        client.send(resetFrame(stream, code))
      }
      await eventually('both handlers get the error', () => outcomes.length === 2)
      assert.deepEqual(outcomes, ['gone', 'gone'])
      assert.deepEqual(server.bugs, [])
      client.send(postFrame(5, '/now'), frame(FRAME.data, 1, 5, Buffer.from('12345')))
      assert.equal((await client.answer(5))?.toString(), 'ok')
      client.close()
    })

    test(`a response to a stream reset with code ${code} while its body waits unread does no harm`, async () => {
      const gate = Promise.withResolvers<void>()
      let answered = 0
      await using server = await startListener(async (request) => {
        if (request.path !== '/held') return text(200, 'ok')
        // A body that is requested and not read makes Node keep a closed stream.
        request.body().catch(() => {})
        await gate.promise
        answered += 1
        return text(200, 'ok')
      })
      const client = await RawHttp2.open(server.port)
      client.send(
        postFrame(1, '/held', { expect: '100-continue' }),
        frame(FRAME.data, 0, 1, Buffer.alloc(1000)),
        resetFrame(1, code),
      )
      await sleep(50)
      gate.resolve()
      await eventually('the handler has responded', () => answered === 1)
      client.send(postFrame(3, '/next'))
      assert.ok(await client.find((one) => one.stream === 3 && one.type === FRAME.data))
      assert.deepEqual(server.bugs, [])
      client.close()
    })
  }

  for (const code of [0, 8]) {
    test(`a stream reset with code ${code} after its body was too large aborts the signal`, async () => {
      const gate = Promise.withResolvers<void>()
      const seen: Request[] = []
      await using server = await startListener(
        async (request) => {
          seen.push(request)
          await request.body().catch(() => {})
          await gate.promise
          return text(413, 'too large')
        },
        { limits: { bodyBytesMax: 1000 } },
      )
      const client = await RawHttp2.open(server.port)
      client.send(postFrame(1), frame(FRAME.data, 0, 1, Buffer.alloc(2000)))
      await eventually('the request is in progress', () => seen.length === 1)
      await sleep(50)
      // More data that is never read: Node keeps a reset stream because of it.
      client.send(frame(FRAME.data, 0, 1, Buffer.alloc(5000)))
      await sleep(50)
      client.send(resetFrame(1, code))
      await eventually('the signal aborts', () => seen[0]?.signal.aborted === true)
      gate.resolve()
      await server.listener.quiet()
      assert.deepEqual(server.bugs, [])
      client.close()
    })
  }

  test('the peer of a closed connection can still be read', async () => {
    const gate = Promise.withResolvers<void>()
    const seen: unknown[] = []
    await using server = await startListener(async (request) => {
      await gate.promise
      seen.push(request.peer.address, request.peer.clientCertificate())
      return text(200, 'ok')
    })
    const session = await openSession(server.port)
    startRequest(session, {})
    await eventually('the request has arrived', () => server.listener.connectionCount === 1)
    await sleep(50)
    session.destroy()
    await eventually('the connection is closed', () => server.listener.connectionCount === 0)
    gate.resolve()
    await eventually('the handler has read the peer', () => seen.length === 2)
    assert.deepEqual(seen, ['127.0.0.1', undefined])
    assert.deepEqual(server.bugs, [])
  })
})

function stream(
  chunks: () => AsyncIterable<string | Uint8Array>,
  extra: Partial<Response> = {},
): Response {
  return { status: 200, headers: { 'content-type': 'text/plain' }, body: chunks(), ...extra }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

async function bodyOutcome(request: Request): Promise<string> {
  try {
    return `${(await request.body()).length} bytes`
  } catch (error) {
    return error instanceof ExchangeError ? error.kind : String(error)
  }
}

/** Responses that cannot be sent: bugs of a handler, which must affect that request only. */
function unsendable(protocol: Protocol): readonly (readonly [string, Response])[] {
  const onBoth: [string, Response][] = [
    ['an impossible header name', { ...text(200, ''), headers: { 'x bad': 'a' } }],
    ['an impossible status', text(99, '')],
  ]
  // HTTP/2 frames its headers, so a line break in one does not end it.
  return protocol === 'h2'
    ? onBoth
    : [
        ['a line break in a header', { ...text(200, ''), headers: { 'x-bad': 'a\r\nb: c' } }],
        ...onBoth,
      ]
}

/** Requests a response and never reads a byte of its body. */
async function openUnread(protocol: Protocol, port: number, path: string): Promise<Disposable> {
  if (protocol === 'h1') {
    const socket = await openTls(port, { ALPNProtocols: ['http/1.1'] })
    socket.pause()
    socket.write(requestHead({ path }))
    return { [Symbol.dispose]: () => void socket.destroy() }
  }
  const session = await openSession(port)
  startRequest(session, { path })
  return { [Symbol.dispose]: () => session.destroy() }
}

interface ExpectClient {
  hasContinued(): boolean
  continued(): Promise<void>
  sendBody(body: string): void
  answer(): Promise<{ status: number; body: string }>
  close(): void
}

/** Announces a body of five bytes and waits for 100-continue. */
async function expectClient(protocol: Protocol, port: number, path: string): Promise<ExpectClient> {
  const headers = { expect: '100-continue', 'content-length': '5' }
  if (protocol === 'h2') {
    const session = await openSession(port)
    const request = session.request({ ':method': 'POST', ':path': path, ...headers })
    request.on('error', () => {})
    const continued = Promise.withResolvers<void>()
    let hasContinued = false
    request.on('continue', () => {
      hasContinued = true
      continued.resolve()
    })
    const answer = new Promise<{ status: number; body: string }>((resolve) => {
      request.on('response', async (head) => {
        let body = ''
        for await (const chunk of request) body += chunk
        resolve({ status: Number(head[':status']), body })
      })
    })
    return {
      hasContinued: () => hasContinued,
      continued: () => continued.promise,
      sendBody: (body) => void request.end(body),
      answer: () => answer,
      close: () => session.destroy(),
    }
  }
  const client = await RawHttp1.open(port)
  const socketBytes: Buffer[] = []
  client.socket.on('data', (chunk) => socketBytes.push(chunk))
  client.send(requestHead({ method: 'POST', path, headers }))
  const hasContinued = (): boolean => Buffer.concat(socketBytes).includes('100 Continue')
  return {
    hasContinued,
    continued: () => eventually('100 Continue', hasContinued),
    sendBody: (body) => client.send(body),
    answer: async () => {
      const { status, body } = await client.readAnswer('POST')
      return { status, body: body.toString() }
    },
    close: () => client.close(),
  }
}

/** Posts on its own connection, and reads while it writes, as clients do. */
async function postFramed(
  protocol: Protocol,
  port: number,
  { body, framing }: { body: Buffer; framing: 'content-length' | 'unannounced' },
): Promise<{ status: number; body: Buffer; isWhole: boolean }> {
  if (protocol === 'h2') {
    using client = await openClient('h2', port)
    const headers: Record<string, string> =
      framing === 'content-length' ? { 'content-length': String(body.length) } : {}
    return await client.request({ method: 'POST', headers, body })
  }
  const client = await RawHttp1.open(port)
  const answer = client.readAnswer('POST')
  if (framing === 'content-length') {
    client.send(requestHead({ method: 'POST', body }))
    client.send(body)
  } else {
    client.send(requestHead({ method: 'POST', headers: { 'transfer-encoding': 'chunked' } }))
    for (let start = 0; start < body.length; start += 16_384) {
      const piece = body.subarray(start, start + 16_384)
      client.send(`${piece.length.toString(16)}\r\n`)
      client.send(piece)
      client.send('\r\n')
    }
    client.send('0\r\n\r\n')
  }
  try {
    return await answer
  } finally {
    client.close()
  }
}

test('a body that is not read to its end is given up when the response is there', async () => {
  const { promise: reading, resolve } = Promise.withResolvers<Promise<unknown>>()
  // This handler is one that the client's own timeout left behind: it still waits for the body.
  const impatient: Handler = async (request) => {
    resolve(request.body().catch((error: unknown) => error))
    return { status: 504, headers: {}, body: 'late\n' }
  }
  const server = await startPlainListener(impatient)
  try {
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc')
    await once(socket, 'data')
    socket.destroy()
    const failure = await Promise.race([reading, sleep(5_000, 'still waiting')])
    assert.ok(failure instanceof ExchangeError, String(failure))
    assert.equal(failure.kind, 'gone')
  } finally {
    await server.listener.close()
  }
})

for (const protocol of PROTOCOLS) {
  describe(`clients that are slow, over ${protocol}`, () => {
    test('a body that arrives below the minimum rate is refused, and a faster one is not', async () => {
      const limits = { bodyGraceMs: 1500, bodyBytesPerSecondMin: 1024 }
      await using server = await startListener(
        async (request): Promise<Response> => {
          await request.received?.()
          const outcome = await request.body().then(
            (bytes) => `${bytes.length} bytes`,
            (error: unknown) => (error instanceof ExchangeError ? error.kind : 'bug'),
          )
          return { status: 200, headers: {}, body: outcome }
        },
        { limits },
      )
      const answers = await Promise.all([
        drip(protocol, server.port, { chunks: 4096, bytes: 2 }),
        drip(protocol, server.port, { chunks: 8, bytes: 1024 }),
      ])
      assert.deepEqual(answers, ['too-slow', '8192 bytes'])
    })

    test('a stream is idle when it is produced, or when its client has kept it waiting for a second', async () => {
      const idleMs = new Map<string, number>()
      await using server = await startListener(async ({ path }): Promise<Response> => {
        const startedAt = performance.now()
        return {
          status: 200,
          headers: {},
          body: parts(path === '/short' ? 1 : 2000),
          onIdle: () => idleMs.set(path, performance.now() - startedAt),
        }
      })
      using client = await openClient(protocol, server.port)
      await client.request({ path: '/short' })
      assert.ok((idleMs.get('/short') ?? Number.NaN) < 1000)
      await client.open({ path: '/unread' })
      await eventually('the unread stream is idle', () => idleMs.has('/unread'))
      assert.ok((idleMs.get('/unread') ?? 0) >= 1000)
    })
  })
}

/** Sends a body chunk by chunk until there is a response, and returns the text of that. */
async function drip(
  protocol: Protocol,
  port: number,
  { chunks, bytes }: { readonly chunks: number; readonly bytes: number },
): Promise<string> {
  const headers = { 'content-length': String(chunks * bytes) }
  const session = protocol === 'h2' ? await openSession(port) : undefined
  const sent =
    session?.request({ ':method': 'POST', ':path': '/', ...headers }) ??
    httpsRequest({ method: 'POST', host: '127.0.0.1', port, headers, rejectUnauthorized: false })
  sent.on('error', () => {})
  const answered = protocol === 'h2' ? Promise.resolve(sent as Readable) : answerOf(sent)
  const body = answered.then((stream) =>
    stream.setEncoding('utf8').reduce((all, one) => all + one, ''),
  )
  let isOver = false
  const over = body.finally(() => {
    isOver = true
  })
  for (let n = 0; n < chunks && !isOver; n++) {
    sent.write(Buffer.alloc(bytes, 'x'))
    await Promise.race([sleep(300), over])
  }
  if (!isOver) sent.end()
  const text = await over
  session?.destroy()
  return text
}

async function answerOf(sent: EventEmitter): Promise<Readable> {
  const [answer] = await once(sent, 'response')
  return answer as Readable
}

async function* parts(count: number): AsyncGenerator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.alloc(16 * 1024)
}
