/** gRPC sessions with servers that have certificates for other hosts, and with slow and silent ones. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { framed } from '../../../src/grpc/message-frames.ts'
import { Session, type Target } from '../../../src/grpc/session.ts'
import { CertificateAuthority } from '../../support/certs.ts'

const authority = await CertificateAuthority.create()
const trusting = createSecureContext({ ca: authority.cert })

interface Etcd extends AsyncDisposable {
  readonly port: number
}

/** A server with a certificate for these hosts, which responds `yes`. */
async function start(hosts: readonly string[]): Promise<Etcd> {
  const server = http2.createSecureServer(await authority.issueServer(hosts))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(framed(Buffer.from('yes')))
  })
  // A client that does not trust the certificate.
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => closed(server),
  }
}

async function closed(server: Http2SecureServer): Promise<void> {
  server.close()
  await once(server, 'close')
}

/** Resolves to the session once it is ready, or to the reason why it ended. */
function connect(target: Target): Promise<Session | string> {
  return new Promise((resolve) => {
    const session: Session = new Session({
      target,
      onReady: () => resolve(session),
      onEnd: (error) => resolve(error?.message ?? 'closed'),
    })
  })
}

const call = { path: '/a/B', decode: String, maxBytes: 1024 * 1024 }

async function ask(host: string, port: number, tls: SecureContext = trusting): Promise<string> {
  const session = await connect({ host, port, tls })
  if (typeof session === 'string') return session
  const { promise, resolve } = Promise.withResolvers<string>()
  session.unary({ ...call, message: Buffer.from('ask'), timeoutMs: 5_000 }, (failure, response) =>
    resolve(failure?.message ?? response ?? ''),
  )
  const answer = await promise
  session.destroy()
  return answer
}

test('a certificate must be for the host or the address that was asked for', async () => {
  await using byAddress = await start(['127.0.0.1'])
  await using byName = await start(['localhost'])
  assert.equal(await ask('127.0.0.1', byAddress.port), 'yes')
  assert.equal(await ask('localhost', byName.port), 'yes')
  assert.match(await ask('localhost', byAddress.port), /does not match certificate's altnames/)
  assert.match(await ask('127.0.0.1', byName.port), /does not match certificate's altnames/)
})

test('a certificate of another authority is refused', async () => {
  await using etcd = await start(['127.0.0.1'])
  const other = createSecureContext({ ca: (await CertificateAuthority.create('other')).cert })
  assert.match(await ask('127.0.0.1', etcd.port, other), /unable to verify|unable to get/)
})

test('a session is not ready before the settings of the server have arrived', async () => {
  const sockets: net.Socket[] = []
  const server = net.createServer((socket) => void sockets.push(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  let isReady = false
  const session = new Session({
    target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    onReady: () => {
      isReady = true
    },
    onEnd: () => {},
  })
  await once(server, 'connection')
  await sleep(300)
  assert.equal(isReady, false)
  session.destroy()
  for (const socket of sockets) socket.destroy()
  server.close()
  await once(server, 'close')
})

interface Relayed extends AsyncDisposable {
  readonly session: Session
  /** From here on, nothing passes in either direction, and no connection is closed. */
  freeze(): void
}

/** A session through a relay with a server that handles each stream in this way. */
async function startRelayed(
  handle: (stream: ServerHttp2Stream) => void,
  bytesPerSecond?: number,
): Promise<Relayed> {
  const server = http2.createServer()
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    handle(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: net.Socket[] = []
  const relay = net.createServer((near) => {
    const far = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
    for (const socket of [near, far]) sockets.push(socket.on('error', () => {}))
    near.pipe(far)
    if (bytesPerSecond === undefined) far.pipe(near)
    else throttle(far, near, bytesPerSecond)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const { port } = relay.address() as AddressInfo
  const session = await connect({ host: '127.0.0.1', port })
  assert.ok(typeof session !== 'string')
  return {
    session,
    freeze: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    [Symbol.asyncDispose]: async () => {
      session.destroy()
      for (const socket of sockets) socket.destroy()
      relay.close()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Reads everything at once, as the buffers of a slow link do, and passes it on at this rate. */
function throttle(from: net.Socket, to: net.Socket, bytesPerSecond: number): void {
  const waiting: Buffer[] = []
  from.on('data', (chunk: Buffer) => waiting.push(chunk))
  const startedAt = performance.now()
  let passed = 0
  const timer = setInterval(() => {
    const allowed = ((performance.now() - startedAt) / 1000) * bytesPerSecond
    while (waiting[0] !== undefined && passed < allowed) {
      passed += waiting[0].length
      to.write(waiting[0])
      waiting.shift()
    }
  }, 20)
  to.on('close', () => clearInterval(timer))
}

describe('a ping', { concurrency: true, timeout: 30_000 }, () => {
  test('closes a connection whose server stops responding, and no other', async () => {
    const received = Promise.withResolvers<void>()
    await using relayed = await startRelayed(() => received.resolve())
    const { session } = relayed
    const duplex = session.duplex(call)
    const failed = once(duplex, 'error')
    await received.promise
    session.ping()
    // Longer than the ping may take, and as long as etcd wants between pings.
    await sleep(5_600)
    assert.equal(session.isDestroyed, false, 'the server responded to the ping')
    relayed.freeze()
    const startedAt = performance.now()
    session.ping()
    await failed
    const seconds = (performance.now() - startedAt) / 1000
    assert.ok(seconds > 2.9 && seconds < 10, `${seconds} s; a ping may take 3 s`)
  })

  test('does not close a connection on which a response is still arriving', async () => {
    const size = 4 * 1024 * 1024
    const sent = Promise.withResolvers<void>()
    await using relayed = await startRelayed((stream) => {
      stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(framed(Buffer.alloc(size - 1024)), sent.resolve)
    }, size / 5)
    const { session } = relayed
    const response = new Promise((resolve) => {
      const decode = (message: Buffer) => message.length
      const options = { path: '/a/B', message: Buffer.alloc(0), decode, maxBytes: size }
      session.unary({ ...options, timeoutMs: 20_000 }, (failure, length) =>
        resolve(failure ?? length),
      )
    })
    await sent.promise
    // Its response is behind five seconds of data.
    session.ping()
    assert.equal(await response, size - 1024)
    await sleep(3_500)
    assert.equal(session.isDestroyed, false, 'the server responded to the ping')
  })

  test('is sent later when it is too early for another one', async () => {
    const received = Promise.withResolvers<void>()
    await using relayed = await startRelayed(() => received.resolve())
    const { session } = relayed
    const failed = once(session.duplex(call), 'error')
    await received.promise
    const startedAt = performance.now()
    session.ping()
    await sleep(500)
    relayed.freeze()
    session.ping()
    await failed
    const seconds = (performance.now() - startedAt) / 1000
    assert.ok(
      seconds > 8.4 && seconds < 15,
      `${seconds} s; it is sent after 5.5 s and may take 3 s`,
    )
  })
})
