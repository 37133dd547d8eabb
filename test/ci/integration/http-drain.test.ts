import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type ClientHttp2Session, constants } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import type { Handler, Request, Response } from '../../../src/http/exchange.ts'
import { eventually } from '../../support/eventually.ts'
import {
  openClient,
  openSession,
  PROTOCOLS,
  RefusedError,
  requestOn,
} from '../../support/http-client.ts'
import { startListener, startPlainListener, text } from '../../support/listener.ts'
import { openPlain, openTls, RawHttp1, requestHead } from '../../support/raw-http1.ts'
import type { Frame } from '../../support/raw-http2.ts'
import { FLAG, FRAME, frame, getFrame, postFrame, RawHttp2 } from '../../support/raw-http2.ts'
import { Stopwatch } from '../../support/stopwatch.ts'

/**
 * Responds at once; to `/slow` when the gate opens; to `/watch` with a stream that does not end.
 */
function gated(): { readonly handler: Handler; readonly started: Request[]; open(): void } {
  const gate = Promise.withResolvers<void>()
  const started: Request[] = []
  const handler: Handler = async (request) => {
    started.push(request)
    if (request.path === '/watch') return watch(request)
    if (request.path === '/slow') await gate.promise
    return text(200, `response to ${request.path}`)
  }
  return { handler, started, open: () => gate.resolve() }
}

function watch(request: Request): Response {
  return {
    status: 200,
    headers: {},
    longRunning: true,
    body: (async function* () {
      yield 'first\n'
      if (!request.signal.aborted) {
        await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
      }
      yield 'last\n'
    })(),
  }
}

test('quiet waits for requests that arrive on a kept connection while it waits', async () => {
  const gates = new Map(['/a', '/b', '/c'].map((path) => [path, Promise.withResolvers<void>()]))
  const started: string[] = []
  await using server = await startListener(async (request) => {
    started.push(request.path)
    await gates.get(request.path)?.promise
    return text(200, request.path)
  })
  using first = await openClient('h1', server.port)
  using other = await openClient('h1', server.port)
  const a = first.request({ path: '/a' })
  const c = other.request({ path: '/c' })
  await eventually('both are in progress', () => started.length === 2)
  let isQuiet = false
  const quiet = server.listener.quiet().then(() => {
    isQuiet = true
  })
  gates.get('/a')?.resolve()
  await a
  // The headers of the response were sent before the stop, so the connection was kept alive.
  const b = first.request({ path: '/b' })
  await eventually('the late request is in progress', () => started.includes('/b'))
  gates.get('/c')?.resolve()
  await c
  await sleep(100)
  assert.equal(isQuiet, false, 'quiet must wait for the late request')
  gates.get('/b')?.resolve()
  assert.equal((await b).status, 200)
  await quiet
})

/** Forwards connections to the port; what the server sends arrives slowly. */
async function slowNetwork(port: number): Promise<Server> {
  const relay = createServer((client) => {
    const server = connectTcp(port, '127.0.0.1')
    client.pipe(server)
    server.on('data', (bytes) => {
      client.write(bytes)
      server.pause()
      setTimeout(() => server.resume(), 5)
    })
    server.on('end', () => client.end())
    server.on('error', () => client.destroy())
    client.on('error', () => server.destroy())
    client.on('close', () => server.destroy())
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return relay
}

test('a response that is still on its way when connections are closed arrives whole', async () => {
  const body = 'x'.repeat(1_000_000)
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  await using server = await startListener(async () => {
    asked.resolve()
    await go.promise
    return text(200, body)
  })
  const relay = await slowNetwork(server.port)
  const client = await RawHttp2.open((relay.address() as AddressInfo).port, { preface: false })
  client.greet()
  // The server may send all of it at once.
  const window = Buffer.from([0, 4, 0, 0xff, 0xff, 0xff])
  const more = Buffer.from([0, 0xff, 0xff, 0xff])
  client.send(frame(FRAME.settings, 0, 0, window), frame(FRAME.windowUpdate, 0, 0, more))
  await client.settled()
  client.send(getFrame(1))
  await asked.promise
  server.listener.stopAccepting()
  server.listener.closeIdle()
  go.resolve()
  await server.listener.quiet()
  const closing = server.listener.close()
  await sleep(20)
  // A destroyed socket would answer any frame with a reset, and discard what is not delivered yet.
  client.send(frame(FRAME.ping, 0, 0, Buffer.alloc(8)))
  const answer = await client.answer(1)
  client.close()
  relay.close()
  await closing
  assert.equal(answer?.length, body.length)
})

for (const protocol of PROTOCOLS) {
  describe(`stopping over ${protocol}`, () => {
    test('new connections are refused and requests in progress finish', async () => {
      const { handler, started, open } = gated()
      await using server = await startListener(handler)
      using client = await openClient(protocol, server.port)
      const slow = client.request({ path: '/slow' })
      await eventually('the request is in progress', () => started.length === 1)
      server.listener.stopAccepting()
      await assert.rejects(openTls(server.port), { code: 'ECONNREFUSED' })
      await sleep(100)
      open()
      const answer = await slow
      assert.equal(answer.body.toString(), 'response to /slow')
      assert.ok(answer.isWhole)
    })

    test('closeIdle closes idle connections at once, others after their response', async () => {
      const { handler, started, open } = gated()
      await using server = await startListener(handler)
      using idle = await openClient(protocol, server.port)
      await idle.request({})
      using busy = await openClient(protocol, server.port)
      const slow = busy.request({ path: '/slow' })
      await eventually('the request is in progress', () => started.length === 2)
      server.listener.stopAccepting()
      server.listener.closeIdle()
      await eventually('the idle connection is closed', () => server.listener.connectionCount === 1)
      open()
      const answer = await slow
      assert.equal(answer.body.toString(), 'response to /slow')
      assert.ok(answer.isWhole)
      await eventually('the busy connection is closed', () => server.listener.connectionCount === 0)
    })

    test('quiet waits for requests in progress and not for long ones', async () => {
      const { handler, started, open } = gated()
      await using server = await startListener(handler)
      using watcher = await openClient(protocol, server.port)
      const watching = await watcher.open({ path: '/watch' })
      await watching.read()
      using client = await openClient(protocol, server.port)
      const slow = client.request({ path: '/slow' })
      await eventually('the request is in progress', () => started.length === 2)
      let isQuiet = false
      const quiet = server.listener.quiet().then(() => {
        isQuiet = true
      })
      await sleep(150)
      assert.ok(!isQuiet)
      open()
      await slow
      await quiet
      await server.listener.endLongRequests(2000)
      assert.equal((await watching.read())?.toString(), 'last\n')
      assert.equal(await watching.read(), undefined)
    })

    test('quiet is immediate when nothing is in progress', async () => {
      await using server = await startListener(gated().handler)
      using client = await openClient(protocol, server.port)
      await client.request({})
      await server.listener.quiet()
    })

    test('quiet does not wait for a request that becomes long meanwhile', async () => {
      const gate = Promise.withResolvers<void>()
      const started: Request[] = []
      await using server = await startListener(async (request) => {
        started.push(request)
        await gate.promise
        return watch(request)
      })
      using client = await openClient(protocol, server.port)
      const opening = client.open({})
      await eventually('the request is in progress', () => started.length === 1)
      const quiet = server.listener.quiet()
      gate.resolve()
      await quiet
      const answer = await opening
      assert.equal((await answer.read())?.toString(), 'first\n')
    })

    test('hundreds of long requests all end normally', async () => {
      await using server = await startListener(async (request) => watch(request))
      const count = protocol === 'h1' ? 50 : 250
      const clients = await Promise.all(
        Array.from({ length: protocol === 'h1' ? 50 : 5 }, () => openClient(protocol, server.port)),
      )
      const answers = Array.from({ length: count }, (_, n) =>
        clients[n % clients.length]?.request({}),
      )
      await sleep(300)
      await server.listener.endLongRequests(5000)
      for (const answer of await Promise.all(answers)) {
        assert.equal(answer?.body.toString(), 'first\nlast\n')
        assert.ok(answer?.isWhole)
      }
      for (const client of clients) client[Symbol.dispose]()
    })

    test('endLongRequests does not wait for a client that does not read', async () => {
      await using server = await startListener(async (request) => ({
        ...watch(request),
        body: (async function* () {
          for (;;) yield Buffer.alloc(65_536)
        })(),
      }))
      const ALPNProtocols = [protocol === 'h2' ? 'h2' : 'http/1.1']
      const socket = protocol === 'h1' ? await openTls(server.port, { ALPNProtocols }) : undefined
      socket?.pause()
      socket?.write(requestHead({}))
      const session = protocol === 'h2' ? await openSession(server.port) : undefined
      session?.request({ ':path': '/' }).on('error', () => {})
      await sleep(300)
      const stopwatch = new Stopwatch()
      await server.listener.endLongRequests(500)
      const tookMs = stopwatch.ms
      assert.ok(tookMs < 1500, `it waited ${tookMs} ms`)
      await server.listener.close()
      await eventually('all are gone', () => server.listener.connectionCount === 0)
      socket?.destroy()
      session?.destroy()
    })
  })
}

describe('signals to clients at shutdown', () => {
  test('h1: responses carry `Connection: close`, for requests before and after the stop', async () => {
    const { handler, started, open } = gated()
    await using server = await startListener(handler)
    const under = await RawHttp1.open(server.port)
    const idle = await RawHttp1.open(server.port)
    assert.notEqual((await idle.request({})).headers['connection'], 'close')
    const slow = under.request({ path: '/slow' })
    await eventually('the request is in progress', () => started.length === 2)
    server.listener.stopAccepting()
    const after = await idle.request({ path: '/after' })
    assert.equal(after.body.toString(), 'response to /after')
    assert.equal(after.headers['connection'], 'close')
    open()
    assert.equal((await slow).headers['connection'], 'close')
    await Promise.all([idle.closed, under.closed])
  })

  test('h1: a watch that begins during shutdown ends by itself', async () => {
    await using server = await startListener(gated().handler)
    const client = await RawHttp1.open(server.port)
    await client.request({})
    server.listener.stopAccepting()
    const answer = await client.request({ path: '/watch' })
    assert.equal(answer.body.toString(), 'first\nlast\n')
    assert.ok(answer.isWhole)
  })

  test('plain h1: responses carry `Connection: close`, and new connections are refused', async () => {
    await using server = await startPlainListener(gated().handler)
    const client = await RawHttp1.openPlain(server.port)
    await client.request({})
    server.listener.stopAccepting()
    await assert.rejects(openPlain(server.port), { code: 'ECONNREFUSED' })
    assert.equal((await client.request({})).headers['connection'], 'close')
    await client.closed
  })

  test('h2: GOAWAY names the last request served, and requests in progress finish', async () => {
    const { handler, started, open } = gated()
    await using server = await startListener(handler)
    const client = await RawHttp2.open(server.port)
    client.send(getFrame(1, '/before'), getFrame(3, '/slow'))
    assert.equal((await client.answer(1))?.toString(), 'response to /before')
    await eventually('both are there', () => started.length === 2)
    server.listener.stopAccepting()
    const goaway = await client.find((one) => one.type === FRAME.goaway)
    assert.deepEqual(goawayOf(goaway), { lastStream: 3, code: 0 })
    assert.ok(!client.isClosed)
    open()
    assert.equal((await client.answer(3))?.toString(), 'response to /slow')
    server.listener.closeIdle()
    await client.closed
    const last = client.frames.findLast((one) => one.type === FRAME.goaway)
    assert.deepEqual(goawayOf(last), { lastStream: 3, code: 0 })
  })

  test('h2: a request that crosses the GOAWAY is not processed, and disturbs no other', async () => {
    const { handler, started, open } = gated()
    await using server = await startListener(handler)
    const client = await RawHttp2.open(server.port)
    client.send(getFrame(1, '/slow'))
    await eventually('the request is in progress', () => started.length === 1)
    server.listener.stopAccepting()
    // Sent before the client can have received the GOAWAY. The stream is above the last one that
    // the GOAWAY names, so the client knows that it may retry elsewhere.
    client.send(getFrame(3, '/crossing'))
    client.send(postFrame(5, '/crossing'), frame(FRAME.data, FLAG.endStream, 5, Buffer.alloc(10)))
    const goaway = await client.find((one) => one.type === FRAME.goaway)
    assert.deepEqual(goawayOf(goaway), { lastStream: 1, code: 0 })
    await sleep(100)
    open()
    assert.equal((await client.answer(1))?.toString(), 'response to /slow')
    // It must not have been processed, since the client is going to retry it.
    assert.deepEqual(
      started.map((request) => request.path),
      ['/slow'],
    )
    assert.deepEqual(
      client.frames.filter((one) => one.stream > 1),
      [],
    )
    client.close()
  })

  test('h2: a request of a busy client that is reported as not processed was not processed', async () => {
    const served = new Set<string>()
    await using server = await startListener(async (request) => {
      await request.body()
      served.add(request.path)
      await sleep(1)
      return text(200, 'done')
    })
    const sessions = await Promise.all(Array.from({ length: 20 }, () => openSession(server.port)))
    const busy = sessions.map((session, n) => postUntilRefused(session, `/${n}`))
    await sleep(200)
    server.listener.stopAccepting()
    const refused = (await Promise.all(busy)).filter((path) => path !== undefined)
    for (const session of sessions) session.destroy()
    assert.ok(served.size > 0)
    // The client retries it elsewhere, so a write would be applied twice.
    assert.deepEqual(
      refused.filter((path) => served.has(path)),
      [],
    )
  })

  for (const isLater of [false, true]) {
    const when = isLater ? 'closeIdle' : 'stopAccepting'
    test(`h2: a handshake that ends after ${when} gets a GOAWAY with stream 0`, async () => {
      const { handler, started } = gated()
      await using server = await startListener(handler)
      const socket = await openPlain(server.port)
      await eventually('it is accepted', () => server.listener.connectionCount === 1)
      server.listener.stopAccepting()
      if (isLater) server.listener.closeIdle()
      const client = await RawHttp2.over(
        connectTls({ socket, ALPNProtocols: ['h2'], rejectUnauthorized: false }),
      )
      client.send(getFrame(1, '/late'))
      await client.closed
      const goaway = client.frames.findLast((one) => one.type === FRAME.goaway)
      assert.deepEqual(goawayOf(goaway), { lastStream: 0, code: 0 })
      assert.equal(started.length, 0)
    })
  }
})

/**
 * Sends requests one after another until the server shuts down. Returns the path of a request that
 * was reported as not processed.
 */
async function postUntilRefused(
  session: ClientHttp2Session,
  path: string,
): Promise<string | undefined> {
  let hasLeft = false
  session.on('goaway', () => {
    hasLeft = true
  })
  for (let n = 0; !hasLeft && !session.closed; n++) {
    const stream = session.request({ ':method': 'POST', ':path': `${path}/${n}` })
    stream.on('error', () => {})
    stream.resume()
    stream.end('to be done once')
    await new Promise((resolve) => stream.once('close', resolve))
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return `${path}/${n}`
  }
  return undefined
}

describe('close of a listener', () => {
  test('resolves whatever state the listener is in', async () => {
    for (const prepare of [[], ['stop'], ['stop', 'idle'], ['idle']]) {
      const server = await startListener(gated().handler)
      const clients = await Promise.all(PROTOCOLS.map((one) => openClient(one, server.port)))
      if (prepare.includes('stop')) server.listener.stopAccepting()
      if (prepare.includes('idle')) server.listener.closeIdle()
      await server.listener.close()
      await eventually('all are gone', () => server.listener.connectionCount === 0)
      for (const client of clients) client[Symbol.dispose]()
    }
    const unused = await startListener(gated().handler)
    unused.listener.stopAccepting()
    await unused.listener.close()
  })

  test('a closed listener leaves nothing behind that keeps the process alive', async () => {
    const support = (name: string): string =>
      JSON.stringify(join(import.meta.dirname, '../../support', name))
    const program = `
      import { startListener, text } from ${support('listener.ts')}
      import { openClient } from ${support('http-client.ts')}
      const server = await startListener(async (request) => {
        if (request.path === '/never') await new Promise(() => {})
        return text(200, 'ok')
      })
      for (const protocol of ['h1', 'h2']) {
        const client = await openClient(protocol, server.port)
        await client.request({})
        client.request({ path: '/never' }).catch(() => {})
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
      await server.listener.close()
      process.stdout.write('closed')
    `
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', program],
      { timeout: 10_000 },
    )
    assert.equal(stdout, 'closed')
  })
})

describe('a shutdown under load', () => {
  test('no request of a well-behaved client fails or is cut', async (t) => {
    const server = await startListener(async (request) => {
      // Now and then a request that is still in progress when the connections are closed.
      await sleep(Math.random() < 0.02 ? 1300 : Math.random() * 20)
      return text(200, request.path)
    })
    const tally: Tally = { answers: 0, sentElsewhere: 0, failures: [], isStopped: false }
    const load = Promise.all([
      ...Array.from({ length: 20 }, (_, n) => loadHttp1(server.port, tally, n * 10)),
      ...Array.from({ length: 4 }, (_, n) => loadHttp2(server.port, tally, n * 10)),
    ])
    await sleep(1000)
    const before = tally.answers
    server.listener.stopAccepting()
    await sleep(1000)
    server.listener.closeIdle()
    await server.listener.quiet()
    await server.listener.close()
    tally.isStopped = true
    await load
    t.diagnostic(
      `${before} responses before, ${tally.answers - before} after the stop, ${tally.sentElsewhere} sent elsewhere`,
    )
    assert.ok(tally.sentElsewhere <= 8, `${tally.sentElsewhere} had to be sent elsewhere`)
    assert.deepEqual(tally.failures, [])
    assert.ok(before > 100, `only ${before} responses before the stop`)
    assert.ok(tally.answers > before)
  })
})

function goawayOf(goaway: Frame | undefined): { lastStream: number; code: number } | undefined {
  if (goaway === undefined) return undefined
  return { lastStream: goaway.payload.readUInt32BE(0), code: goaway.payload.readUInt32BE(4) }
}

interface Tally {
  answers: number
  /** Crossed the GOAWAY: not processed, and retried at another server by a well-behaved client. */
  sentElsewhere: number
  readonly failures: unknown[]
  isStopped: boolean
}

/** Five requests a second on one connection, until a response has `Connection: close`. */
async function loadHttp1(port: number, tally: Tally, offsetMs: number): Promise<void> {
  const client = await RawHttp1.open(port)
  await sleep(offsetMs)
  while (!tally.isStopped) {
    const path = `/${offsetMs}`
    try {
      const answer = await client.request({ path })
      assert.ok(answer.isWhole)
      assert.equal(answer.body.toString(), path)
      tally.answers += 1
      if (answer.headers['connection'] === 'close') break
    } catch (error) {
      tally.failures.push(error)
      break
    }
    await sleep(200)
  }
  client.close()
}

/** Twenty-five concurrent requests a second on one session, until GOAWAY. */
async function loadHttp2(port: number, tally: Tally, offsetMs: number): Promise<void> {
  const session: ClientHttp2Session = await openSession(port)
  let isTold = false
  session.once('goaway', () => {
    isTold = true
  })
  const requests: Promise<void>[] = []
  await sleep(offsetMs)
  while (!isTold && !tally.isStopped && !session.closed) {
    requests.push(requestOnce(session, tally))
    await sleep(40)
  }
  await Promise.all(requests)
  if (!isTold) tally.failures.push('the session never got a GOAWAY')
  session.destroy()
}

async function requestOnce(session: ClientHttp2Session, tally: Tally): Promise<void> {
  try {
    const answer = await requestOn(session, { path: '/load' })
    assert.ok(answer.isWhole)
    assert.equal(answer.body.toString(), '/load')
    tally.answers += 1
  } catch (error) {
    if (error instanceof RefusedError) tally.sentElsewhere += 1
    else tally.failures.push(error)
  }
}
