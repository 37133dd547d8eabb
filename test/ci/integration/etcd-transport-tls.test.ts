/** The gRPC client against servers with certificates for other hosts, and against silent ones. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { type Http2SecureServer } from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { CallFailure } from '../../../src/etcd/transport/call-failure.ts'
import { Client } from '../../../src/etcd/transport/client.ts'
import { framed } from '../../../src/etcd/transport/message-frames.ts'
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

async function ask(host: string, port: number, tls: SecureContext = trusting): Promise<string> {
  const client = new Client({ host, port, tls })
  try {
    const { promise, resolve } = Promise.withResolvers<CallFailure | string>()
    const call = {
      path: '/a/B',
      needsLeader: true,
      decode: String,
      bytesMax: 1024 * 1024,
      message: Buffer.from('ask'),
    }
    client.unary({ ...call, timeoutMs: 5_000 }, (failure, response = '') =>
      resolve(failure ?? response),
    )
    const outcome = await promise
    return typeof outcome === 'string' ? outcome : outcome.details
  } finally {
    client.close()
  }
}

test('transport: a certificate must be for the host or the address that was asked for', async () => {
  await using byAddress = await start(['127.0.0.1'])
  await using byName = await start(['localhost'])
  assert.equal(await ask('127.0.0.1', byAddress.port), 'yes')
  assert.equal(await ask('localhost', byName.port), 'yes')
  assert.match(await ask('localhost', byAddress.port), /does not match certificate's altnames/)
  assert.match(await ask('127.0.0.1', byName.port), /does not match certificate's altnames/)
})

test('transport: a certificate of another authority is refused', async () => {
  await using etcd = await start(['127.0.0.1'])
  const other = createSecureContext({ ca: (await CertificateAuthority.create('other')).cert })
  assert.match(await ask('127.0.0.1', etcd.port, other), /unable to verify|unable to get/)
})

test('transport: a server that accepts connections and sends nothing costs a call its timeout', async () => {
  const sockets: net.Socket[] = []
  const server = net.createServer((socket) => void sockets.push(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Client({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
  const failure = await new Promise<CallFailure | undefined>((resolve) => {
    const call = {
      path: '/a/B',
      needsLeader: true,
      decode: String,
      bytesMax: 1024 * 1024,
      message: Buffer.from('ask'),
    }
    client.unary({ ...call, timeoutMs: 300 }, resolve)
  })
  assert.equal(failure?.details, 'Deadline exceeded')
  assert.equal(client.channel.state, 'connecting', 'not ready before the settings of the server')
  client.close()
  for (const socket of sockets) socket.destroy()
  server.close()
  await once(server, 'close')
})

test('transport: a connection whose server stops responding is closed while a call waits', {
  timeout: 30_000,
}, async () => {
  const server = http2.createServer()
  const received = Promise.withResolvers<void>()
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    received.resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: net.Socket[] = []
  const relay = net.createServer((near) => {
    const far = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
    for (const socket of [near, far]) sockets.push(socket.on('error', () => {}))
    near.pipe(far).pipe(near)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const client = new Client({ host: '127.0.0.1', port: (relay.address() as AddressInfo).port })
  const duplex = client.duplex({
    path: '/a/B',
    needsLeader: false,
    decode: String,
    bytesMax: 1024 * 1024,
  })
  const failed = once(duplex, 'error')
  duplex.write(Buffer.from('watch'))
  await received.promise
  // From here on pings get lost.
  for (const socket of sockets) socket.unpipe().pause()
  const startedAt = performance.now()
  await failed
  const seconds = (performance.now() - startedAt) / 1000
  assert.ok(seconds > 4 && seconds < 20, `${seconds} s: a ping every 5.5 s, 3 s to respond`)
  client.close()
  for (const socket of sockets) socket.destroy()
  relay.close()
  server.close()
})
