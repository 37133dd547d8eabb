import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http2, { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { CallFailure } from './call-failure.ts'
import { framed } from './message-frames.ts'
import { Session, type Target } from './session.ts'
import { status } from './status-codes.ts'

const TIMEOUT_MS = 5_000

interface Server extends AsyncDisposable {
  readonly session: Session
  /** The error of the end of the session, once it has ended. */
  readonly ended: Promise<Error | undefined>
  readonly sessions: readonly ServerHttp2Session[]
}

/** A server that handles each stream in this way, and a session with it. */
async function start(
  handle: (stream: ServerHttp2Stream) => void,
  options?: { readonly maxCalls: number },
): Promise<Server> {
  const sessions: ServerHttp2Session[] = []
  const server = http2.createServer()
  server.on('session', (session) => sessions.push(session))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    handle(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { session, ready, ended } = open({ host: '127.0.0.1', port }, options)
  await ready
  return {
    session,
    ended,
    sessions,
    [Symbol.asyncDispose]: async () => {
      session.destroy()
      for (const each of sessions) each.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function open(target: Target, options?: { readonly maxCalls: number }) {
  const ready = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<Error | undefined>()
  const session = new Session({
    target,
    onReady: ready.resolve,
    onEnd: ended.resolve,
    maxCalls: options?.maxCalls,
  })
  return { session, ready: ready.promise, ended: ended.promise }
}

/** Resolves to the text of the response, or to the failure. */
function call(session: Session, timeoutMs = TIMEOUT_MS): Promise<string | CallFailure> {
  return new Promise((resolve) => {
    session.unary({ ...asked, message: Buffer.from('ask'), timeoutMs }, (failure, response = '') =>
      resolve(failure ?? response),
    )
  })
}

const asked = { path: '/a/B', decode: String, maxBytes: 1024 * 1024 }

function respondOk(stream: ServerHttp2Stream, messages: readonly string[]): void {
  stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  for (const message of messages) stream.write(framed(Buffer.from(message)))
  stream.end()
}

async function failed(session: Session, timeoutMs?: number): Promise<CallFailure> {
  const failure = await call(session, timeoutMs)
  assert.ok(failure instanceof CallFailure, `a response: ${failure}`)
  return failure
}

describe('unary calls', () => {
  test('a call sends its message, and gets the message of the response', async () => {
    const received: Buffer[] = []
    await using server = await start((stream) => {
      stream.on('data', (chunk: Buffer) => received.push(chunk))
      stream.on('end', () => respondOk(stream, ['answer']))
    })
    assert.equal(server.session.hasResponded, false)
    assert.equal(await call(server.session), 'answer')
    assert.equal(server.session.hasResponded, true)
    assert.deepEqual(Buffer.concat(received), framed(Buffer.from('ask')))
  })

  test('a status without a message is a failure of the server, with its decoded text', async () => {
    await using server = await start((stream) =>
      stream.respond(
        { 'grpc-status': '9', 'grpc-message': 'no%20leader %e2%82%ac' },
        { endStream: true },
      ),
    )
    const { code, message, origin, mayHaveBeenApplied } = await failed(server.session)
    assert.deepEqual(
      [code, message, origin, mayHaveBeenApplied],
      [status.FAILED_PRECONDITION, 'no leader €', 'server', true],
    )
  })

  test('a proxy that is not a gRPC server makes the call fail as unavailable', async () => {
    await using server = await start((stream) =>
      stream.respond({ ':status': 503 }, { endStream: true }),
    )
    const { code, origin } = await failed(server.session)
    assert.deepEqual([code, origin], [status.UNAVAILABLE, 'transport'])
  })

  test('a stream that ends without a status is unavailable', async () => {
    await using server = await start((stream) => {
      stream.respond({ 'content-type': 'application/grpc' })
      stream.end(framed(Buffer.from('answer')))
    })
    const { code, origin } = await failed(server.session)
    assert.deepEqual([code, origin], [status.UNAVAILABLE, 'transport'])
  })

  test('a call ends at its deadline, and the server receives a cancel', async () => {
    const closed = Promise.withResolvers<number>()
    await using server = await start((stream) =>
      stream.on('close', () => closed.resolve(stream.rstCode)),
    )
    const { code, origin, mayHaveBeenApplied } = await failed(server.session, 200)
    assert.deepEqual([code, origin, mayHaveBeenApplied], [status.DEADLINE_EXCEEDED, 'local', true])
    assert.equal(await closed.promise, constants.NGHTTP2_CANCEL)
  })

  test('only a call that was certainly not processed says so', async () => {
    await using refusing = await start((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM))
    await using failing = await start((stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
    await using breaking = await start((stream) => stream.session?.socket?.destroy())
    const failures = [
      await failed(refusing.session),
      await failed(failing.session),
      await failed(breaking.session),
      await failed(breaking.session),
    ]
    assert.deepEqual(
      failures.map(({ origin, mayHaveBeenApplied }) => [origin, mayHaveBeenApplied]),
      [
        ['transport', false],
        ['transport', true],
        ['transport', true],
        ['local', false],
      ],
    )
    assert.ok(failures.every(({ code }) => code === status.UNAVAILABLE))
  })

  test('a call whose headers cannot be sent fails, and the session goes on', async () => {
    await using server = await start((stream) => respondOk(stream, ['answer']))
    const { session } = server
    const failure = await new Promise<CallFailure | undefined>((resolve) => {
      const metadata = { connection: 'close' }
      const options = { ...asked, metadata, message: Buffer.from('ask'), timeoutMs: TIMEOUT_MS }
      session.unary(options, resolve)
    })
    assert.deepEqual(
      [failure?.code, failure?.origin, failure?.mayHaveBeenApplied],
      [status.INTERNAL, 'local', false],
    )
    assert.match(failure?.message ?? '', /connection/)
    assert.equal(await call(session), 'answer')
  })
})

describe('a session', () => {
  test('ends with a GOAWAY, and calls in flight still get their responses', async () => {
    const first = Promise.withResolvers<ServerHttp2Stream>()
    await using server = await start((stream) => first.resolve(stream))
    const inFlight = call(server.session)
    const stream = await first.promise
    server.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR)
    assert.equal(await server.ended, undefined)
    assert.equal(server.session.isGoingAway, true)
    server.session.drain()
    assert.equal((await failed(server.session)).mayHaveBeenApplied, false)
    respondOk(stream, ['old'])
    assert.equal(await inFlight, 'old')
  })

  test('ends before it has no streams left', async () => {
    await using server = await start((stream) => respondOk(stream, ['answer']), { maxCalls: 3 })
    for (let count = 0; count < 3; count++) assert.equal(await call(server.session), 'answer')
    assert.equal(await server.ended, undefined)
  })

  test('ends with the reason when there is no server', async () => {
    const { session, ended } = open({ host: '127.0.0.1', port: 1 })
    assert.match((await ended)?.message ?? '', /ECONNREFUSED/)
    assert.equal((await failed(session)).mayHaveBeenApplied, false)
  })

  test('ends when its host cannot be part of a URL', async () => {
    const { ended } = open({ host: 'etcd-0%', port: 2379 })
    assert.ok((await ended) instanceof Error)
  })

  test('fails calls in flight when it is destroyed, and does not report its end', async () => {
    await using server = await start(() => {})
    const response = call(server.session)
    server.session.destroy()
    assert.ok((await response) instanceof CallFailure)
    const reported = await Promise.race([server.ended.then(() => true), sleep(50, false)])
    assert.equal(reported, false)
  })

  test('connects to a Unix socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-grpc-'))
    const path = join(folder, 'socket')
    const server = http2.createServer()
    server.on('stream', (stream) => respondOk(stream, ['answer']))
    server.listen(path)
    await once(server, 'listening')
    const { session, ready } = open({ path })
    await ready
    assert.equal(await call(session), 'answer')
    session.destroy()
    server.close()
    await rm(folder, { recursive: true })
  })
})

describe('duplex calls', () => {
  test('messages go in both directions until the server ends', async () => {
    await using server = await start((stream) => {
      stream.on('data', () => respondOk(stream, ['one', 'two', 'three']))
    })
    const duplex = server.session.duplex(asked)
    duplex.write(Buffer.from('ask'))
    assert.deepEqual(await duplex.toArray(), ['one', 'two', 'three'])
  })

  test('a client that has sent its last message gets the rest', async () => {
    await using server = await start((stream) => {
      const received: Buffer[] = []
      stream.on('data', (bytes: Buffer) => received.push(bytes))
      stream.on('end', () => {
        assert.deepEqual(Buffer.concat(received), framed(Buffer.from('ask')))
        respondOk(stream, ['one', 'two'])
      })
    })
    const duplex = server.session.duplex(asked)
    duplex.end(Buffer.from('ask'))
    assert.deepEqual(await duplex.toArray(), ['one', 'two'])
    assert.equal(duplex.bytesReceived, framed(Buffer.from('one')).length * 2)
  })

  for (const { readAhead, mibMost } of [
    { readAhead: undefined, mibMost: 40 },
    { readAhead: 1, mibMost: 15 },
  ]) {
    test(`a server waits for a client that reads ${readAhead ?? 'many messages'} ahead`, async () => {
      const message = framed(Buffer.alloc(1024 * 1024))
      let sent = 0
      await using server = await start((stream) => {
        stream.respond({ 'content-type': 'application/grpc' })
        const send = (): void => {
          sent += 1
          if (sent < 200 && !stream.destroyed) stream.write(message, send)
        }
        send()
      })
      const duplex = server.session.duplex({ ...asked, readAhead })
      duplex.on('error', () => {})
      duplex.read()
      let before = -1
      while (sent !== before) {
        before = sent
        await sleep(300)
      }
      assert.ok(sent < mibMost, `${sent} MiB were sent`)
      duplex.cancel()
    })
  }

  test('a status other than OK is an error', async () => {
    await using server = await start((stream) =>
      stream.respond({ 'grpc-status': '14', 'grpc-message': 'no leader' }, { endStream: true }),
    )
    const duplex = server.session.duplex(asked)
    await assert.rejects(duplex.toArray(), { code: status.UNAVAILABLE, message: 'no leader' })
  })

  test('a server that ends without a status is an error', async () => {
    await using server = await start((stream) => {
      stream.respond({ 'content-type': 'application/grpc' })
      stream.end()
    })
    const duplex = server.session.duplex(asked)
    await assert.rejects(duplex.toArray(), { code: status.UNAVAILABLE })
  })

  test('a connection that breaks is an error', async () => {
    await using server = await start((stream) => stream.session?.socket?.destroy())
    const duplex = server.session.duplex(asked)
    await assert.rejects(duplex.toArray(), { code: status.UNAVAILABLE })
  })

  test('a message that claims 4 GiB ends the call, and the server sends no more', async () => {
    let sent = 0
    await using server = await start((stream) => {
      stream.respond({ 'content-type': 'application/grpc' })
      stream.write(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]))
      const chunk = Buffer.alloc(64 * 1024)
      const send = (): void => {
        if (stream.destroyed || sent > 2 ** 30) return
        sent += chunk.length
        stream.write(chunk, send)
      }
      send()
    })
    const duplex = server.session.duplex(asked)
    const claim = /^127\.0\.0\.1:\d+ sent a message of 4294967295 bytes, and at most 1048576 /
    const expected = { code: status.RESOURCE_EXHAUSTED, origin: 'local', message: claim }
    await assert.rejects(duplex.toArray(), expected)
    const { code, message } = await failed(server.session)
    assert.equal(code, status.RESOURCE_EXHAUSTED)
    assert.match(message, claim)
    await sleep(200)
    assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were sent`)
  })
})
