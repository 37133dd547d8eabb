import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { peerOf } from '../../../src/http/connections/peer.ts'
import {
  ProxiedConnections,
  type ProxySettings,
} from '../../../src/http/connections/proxied-connections.ts'
import type { Handler } from '../../../src/http/exchange.ts'
import { eventually } from '../../support/eventually.ts'
import { openSession, PROTOCOLS, type Protocol, requestOn } from '../../support/http-client.ts'
import { startListener, type TestListener, text } from '../../support/listener.ts'
import { openPlain, openTls, RawHttp1 } from '../../support/raw-http1.ts'

const HEADER = 'PROXY TCP4 192.0.2.7 198.51.100.1 40000 6443\r\n'
const LOCAL = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')

/** Returns the address of the peer, and whether it is local. */
const echo: Handler = async ({ peer }) =>
  text(200, `${peer.address} ${peer.isLoopback ? 'local' : 'remote'}`)

async function start(
  settings: Partial<ProxySettings> = {},
  limits: { readonly handshakeTimeoutMs?: number } = {},
): Promise<{ server: TestListener; refused: string[]; failed: string[] }> {
  const refused: string[] = []
  const failed: string[] = []
  const server = await startListener(echo, {
    limits,
    proxies: {
      from: ['127.0.0.0/8'],
      onRefused: (reason, address) => refused.push(`${reason} ${address}`),
      ...settings,
    },
    onHandshakeError: (code) => failed.push(code),
  })
  return { server, refused, failed }
}

async function askThrough(raw: Socket, protocol: Protocol): Promise<string> {
  const ALPNProtocols = protocol === 'h2' ? ['h2'] : ['http/1.1']
  const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  if (protocol === 'h1') {
    const client = new RawHttp1(socket)
    const { body } = await client.request({})
    client.close()
    return body.toString()
  }
  const session = await openSession(0, { createConnection: () => socket } as object)
  const { body } = await requestOn(session, {})
  session.close()
  return body.toString()
}

const isClosed = (socket: Socket) => once(socket.resume(), 'close')

describe('PROXY protocol on a listener', () => {
  for (const protocol of PROTOCOLS) {
    test(`the address in the header is that of the caller on ${protocol}, and never local`, async () => {
      const { server } = await start()
      await using _ = server
      for (const [header, expected] of [
        [HEADER, '192.0.2.7 remote'],
        ['PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n', '127.0.0.1 remote'],
        ['PROXY UNKNOWN\r\n', '127.0.0.1 remote'],
        [LOCAL, '127.0.0.1 local'],
      ] as const) {
        const raw = await openPlain(server.port)
        raw.write(header)
        assert.equal(await askThrough(raw, protocol), expected)
      }
    })
  }

  test('a connection from a proxy whose header is not found is never local', async () => {
    const { server } = await start()
    await using _ = server
    // Stands for a TLS socket of which Node does not expose the underlying socket.
    const socket = await openPlain(server.port)
    const caller = new ProxiedConnections({ from: ['127.0.0.0/8'] }, 1000).callerOf(socket)
    assert.equal(peerOf(socket, caller).isLoopback, false)
    const direct = new ProxiedConnections({ from: ['192.0.2.1'] }, 1000).callerOf(socket)
    assert.equal(peerOf(socket, direct).isLoopback, true)
    socket.destroy()
  })

  test('a request of a client that has reset its connection is not served without its address', async () => {
    const seen: string[] = []
    await using server = await startListener(
      async ({ peer }) => {
        seen.push(peer.address)
        return text(200, '')
      },
      { proxies: { from: ['127.0.0.0/8'] } },
    )
    const requests = [
      { alpn: 'http/1.1', bytes: 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' },
      { alpn: 'h2', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0' },
    ]
    for (const { alpn, bytes } of requests) {
      for (let n = 0; n < 30; n++) {
        const raw = await openPlain(server.port)
        raw.on('error', () => {})
        raw.write(HEADER)
        const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: [alpn] })
        socket.on('error', () => {})
        await once(socket, 'secureConnect')
        socket.write(bytes, () => raw.resetAndDestroy())
        await once(raw, 'close')
      }
    }
    const raw = await openPlain(server.port)
    raw.write(HEADER)
    await askThrough(raw, 'h1')
    assert.deepEqual(new Set(seen), new Set(['192.0.2.7']))
  })

  test('a header that arrives byte by byte, and one in a packet with the handshake, are parsed', async () => {
    const { server } = await start()
    await using _ = server
    const slow = await openPlain(server.port)
    slow.setNoDelay(true)
    for (const byte of HEADER) {
      slow.write(byte)
      await sleep(1)
    }
    assert.equal(await askThrough(slow, 'h1'), '192.0.2.7 remote')
    const together = await openPlain(server.port)
    together.cork()
    together.write(HEADER)
    const answer = askThrough(together, 'h2')
    await sleep(5)
    together.uncork()
    assert.equal(await answer, '192.0.2.7 remote')
  })

  test('a connection of a listed address without a header is closed and counted', async () => {
    const { server, refused } = await start()
    await using _ = server
    await assert.rejects(openTls(server.port))
    assert.deepEqual(refused, ['malformed 127.0.0.1'])
  })

  test('a connection whose header does not end is closed after the handshake timeout', async () => {
    const { server, refused } = await start({}, { handshakeTimeoutMs: 200 })
    await using _ = server
    const raw = await openPlain(server.port)
    raw.write('PROXY TCP4')
    await isClosed(raw)
    assert.deepEqual(refused, ['timeout 127.0.0.1'])
    await eventually('the connection is closed', () => server.listener.connectionCount === 0)
  })

  test('a connection that ends before its header is closed and counted', async () => {
    const { server, refused } = await start()
    await using _ = server
    const raw = await openPlain(server.port)
    raw.end('PROXY')
    await isClosed(raw)
    assert.deepEqual(refused, ['closed 127.0.0.1'])
  })

  test('an address that is not listed needs no header, and none is read from it', async () => {
    const { server, refused, failed } = await start({ from: ['192.0.2.0/24', '::1'] })
    await using _ = server
    assert.equal(await askThrough(await openPlain(server.port), 'h2'), '127.0.0.1 local')
    const raw = await openPlain(server.port)
    raw.write(HEADER)
    await isClosed(raw)
    assert.equal(failed.length, 1)
    assert.deepEqual(refused, [])
  })

  test('a connection that waits for its header ends with the listener', async () => {
    const { server } = await start()
    const raw = await openPlain(server.port)
    raw.write('PROXY')
    await sleep(20)
    const closed = isClosed(raw)
    await server.listener.close()
    await closed
  })
})
