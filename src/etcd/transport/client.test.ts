import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallFailure } from './call-failure.ts'
import type { ChannelOptions } from './channel.ts'
import { Client } from './client.ts'
import { status } from './codes.ts'
import { framed } from './message-frames.ts'

const TIMEOUT_MS = 5_000

interface Server extends AsyncDisposable {
  readonly client: Client
  readonly sessions: readonly ServerHttp2Session[]
}

/** A server that answers each stream in this way, and a client of it. */
async function start(
  answer: (stream: ServerHttp2Stream) => void,
  options?: ChannelOptions,
): Promise<Server> {
  const sessions: ServerHttp2Session[] = []
  const server = http2.createServer()
  server.on('session', (session) => sessions.push(session))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    answer(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new Client({ host: '127.0.0.1', port }, options)
  return {
    client,
    sessions,
    [Symbol.asyncDispose]: async () => {
      client.close()
      for (const session of sessions) session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Resolves to the text of the response, or to the failure. */
function call(client: Client, timeoutMs = TIMEOUT_MS): Promise<string | CallFailure> {
  return new Promise((resolve) => {
    const options = {
      path: '/a/B',
      needsLeader: true,
      decode: String,
      bytesMax: 1024 * 1024,
      timeoutMs,
    }
    client.unary({ ...options, message: Buffer.from('ask') }, (failure, response = '') =>
      resolve(failure ?? response),
    )
  })
}

function respondOk(stream: ServerHttp2Stream, messages: readonly string[]): void {
  stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  for (const message of messages) stream.write(framed(Buffer.from(message)))
  stream.end()
}

async function failed(client: Client, timeoutMs?: number): Promise<[number, string]> {
  const failure = await call(client, timeoutMs)
  assert.ok(typeof failure !== 'string', `a response: ${failure}`)
  return [failure.code, failure.details]
}

describe('unary calls', () => {
  test('a call sends its message, and gets the message of the response', async () => {
    const received: Buffer[] = []
    await using server = await start((stream) => {
      stream.on('data', (chunk: Buffer) => received.push(chunk))
      stream.on('end', () => respondOk(stream, ['answer']))
    })
    assert.equal(await call(server.client), 'answer')
    assert.deepEqual(Buffer.concat(received), framed(Buffer.from('ask')))
  })

  test('a status without a message is the failure of the call, with its decoded text', async () => {
    await using server = await start((stream) =>
      stream.respond(
        { 'grpc-status': '9', 'grpc-message': 'no%20leader %e2%82%ac' },
        { endStream: true },
      ),
    )
    assert.deepEqual(await failed(server.client), [status.FAILED_PRECONDITION, 'no leader €'])
  })

  test('a proxy that is not a gRPC server makes the call fail as unavailable', async () => {
    await using server = await start((stream) =>
      stream.respond({ ':status': 503 }, { endStream: true }),
    )
    const [code] = await failed(server.client)
    assert.equal(code, status.UNAVAILABLE)
  })

  test('a stream that is reset, and one that ends without a status, are unavailable', async () => {
    await using reset = await start((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM))
    assert.deepEqual(await failed(reset.client), [
      status.UNAVAILABLE,
      'Received RST_STREAM with code 7',
    ])
    await using cut = await start((stream) => {
      stream.respond({ 'content-type': 'application/grpc' })
      stream.end(framed(Buffer.from('answer')))
    })
    assert.equal((await failed(cut.client))[0], status.UNAVAILABLE)
  })

  test('a server that does not answer in time is told, and the call fails', async () => {
    const closed = Promise.withResolvers<number>()
    await using server = await start((stream) =>
      stream.on('close', () => closed.resolve(stream.rstCode)),
    )
    assert.deepEqual(await failed(server.client, 200), [
      status.DEADLINE_EXCEEDED,
      'Deadline exceeded',
    ])
    assert.equal(await closed.promise, constants.NGHTTP2_CANCEL)
  })

  test('a call on a connection that breaks fails, and the next one has a new connection', async () => {
    let isBroken = true
    await using server = await start((stream) => {
      if (isBroken) stream.session?.socket?.destroy()
      else respondOk(stream, ['answer'])
    })
    assert.equal((await failed(server.client))[0], status.UNAVAILABLE)
    isBroken = false
    assert.equal(await call(server.client), 'answer')
    assert.equal(server.sessions.length, 2)
  })

  test('after a GOAWAY calls in flight still end, and new ones have a new connection', async () => {
    const first = Promise.withResolvers<ServerHttp2Stream>()
    await using server = await start((stream) => {
      if (server.sessions.length === 1) first.resolve(stream)
      else respondOk(stream, ['new'])
    })
    const inFlight = call(server.client)
    const stream = await first.promise
    server.sessions[0]?.goaway(constants.NGHTTP2_NO_ERROR)
    while (server.client.channel.state === 'ready') await sleep(1)
    assert.equal(await call(server.client), 'new')
    respondOk(stream, ['old'])
    assert.equal(await inFlight, 'old')
  })

  test('only a call that was certainly not processed says so', async () => {
    await using refusing = await start((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM))
    const refused = await call(refusing.client)
    await using failing = await start((stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
    const lost = await call(failing.client)
    await using breaking = await start((stream) => stream.session?.socket?.destroy())
    const broken = await call(breaking.client)
    const neverSent = [refused, lost, broken].map(
      (failure) => typeof failure !== 'string' && failure.neverSent,
    )
    assert.deepEqual(neverSent, [true, false, false])
  })

  test('a connection is replaced before it has no streams left', async () => {
    await using server = await start((stream) => respondOk(stream, ['answer']), { callsMost: 3 })
    for (let count = 0; count < 9; count++) assert.equal(await call(server.client), 'answer')
    assert.equal(server.sessions.length, 3)
  })

  test('a host that cannot be part of a URL is a host that cannot be reached', async () => {
    const client = new Client({ host: 'etcd-0%', port: 2379 })
    assert.equal((await failed(client))[0], status.UNAVAILABLE)
    client.close()
  })

  test('a client can be closed while it connects', async () => {
    await using server = await start(() => {})
    const response = call(server.client)
    server.client.close()
    const failure = await response
    assert.ok(typeof failure !== 'string' && failure.neverSent)
  })

  test('without a server calls fail at once, with the reason', async () => {
    const client = new Client({ host: '127.0.0.1', port: 1 })
    const [code, details] = await failed(client)
    assert.equal(code, status.UNAVAILABLE)
    assert.match(details, /cannot connect: .*ECONNREFUSED/)
    assert.equal(client.channel.state, 'failing')
    assert.match((await failed(client))[1], /ECONNREFUSED/)
    client.close()
    assert.throws(() => client.unary({ ...never, message: Buffer.alloc(0) }, () => {}), /closed/)
  })
})

const asked = { path: '/a/B', needsLeader: false, decode: String, bytesMax: 1024 * 1024 }
const never = { ...asked, timeoutMs: TIMEOUT_MS }

describe('duplex calls', () => {
  test('messages go in both directions until the server ends', async () => {
    await using server = await start((stream) => {
      stream.on('data', () => respondOk(stream, ['one', 'two', 'three']))
    })
    const duplex = server.client.duplex(asked)
    duplex.write(Buffer.from('ask'))
    assert.deepEqual(await duplex.toArray(), ['one', 'two', 'three'])
  })

  test('a server waits for a client that does not read', async () => {
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
    const duplex = server.client.duplex(asked)
    duplex.on('error', () => {})
    duplex.read()
    let before = -1
    while (sent !== before) {
      before = sent
      await sleep(300)
    }
    assert.ok(sent < 40, `${sent} MiB were sent`)
    duplex.cancel()
  })

  test('a status other than OK is an error', async () => {
    await using server = await start((stream) =>
      stream.respond({ 'grpc-status': '14', 'grpc-message': 'no leader' }, { endStream: true }),
    )
    const duplex = server.client.duplex(asked)
    await assert.rejects(duplex.toArray(), { code: status.UNAVAILABLE, details: 'no leader' })
  })

  test('a server that ends without a status is an error', async () => {
    await using server = await start((stream) => {
      stream.respond({ 'content-type': 'application/grpc' })
      stream.end()
    })
    const duplex = server.client.duplex(asked)
    await assert.rejects(duplex.toArray(), { code: status.UNAVAILABLE })
  })

  test('a connection that breaks is an error', async () => {
    await using server = await start((stream) => stream.session?.socket?.destroy())
    const duplex = server.client.duplex(asked)
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
    const duplex = server.client.duplex(asked)
    const claim = /^127\.0\.0\.1:\d+ sent a message of 4294967295 bytes, and at most 1048576 /
    await assert.rejects(duplex.toArray(), { code: status.RESOURCE_EXHAUSTED, details: claim })
    const [code, details] = await failed(server.client)
    assert.equal(code, status.RESOURCE_EXHAUSTED)
    assert.match(details, claim)
    await sleep(200)
    assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes were sent`)
  })
})
