/** Connections before their first request: how many are allowed, and which ones are served. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../../../src/lib/client-memory/ledger.ts'
import { eventually } from '../../support/eventually.ts'
import { openClient } from '../../support/http-client.ts'
import { startListener, type TestListenerOptions } from '../../support/listener.ts'
import { RawHttp1 } from '../../support/raw-http1.ts'

const CONNECTIONS = 10
const PROXY = '127.0.0.2'

async function start(options: TestListenerOptions = {}) {
  const ledger = new MemoryLedger({
    ...DEFAULT_LEDGER_LIMITS,
    unauthenticatedConnections: CONNECTIONS,
  })
  const listening = await startListener(
    async (request) => {
      request.memory?.own('ann')
      return { status: 200, headers: {}, body: 'ok\n' }
    },
    { ledger, ...options },
  )
  return { ledger, listening }
}

async function open(port: number, bytes: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (bytes !== '') socket.write(bytes)
  return socket.resume()
}

function openMany(count: number, port: number, bytes: string, from?: string): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => open(port, bytes, from)))
}

describe('connections before their first request', () => {
  for (const [what, bytes, from] of [
    ['without a byte', '', undefined],
    ['inside the TLS handshake', '\x16\x03\x01\x02\x00', undefined],
    ['inside a PROXY header', 'PROXY TCP4 192.0.2.', PROXY],
  ] as const) {
    test(`connections that stop ${what} are counted, and the excess waits`, async () => {
      const { ledger, listening } = await start({ proxies: { from: [PROXY] } })
      await using _ = listening
      const sockets = await openMany(3 * CONNECTIONS, listening.port, bytes, from)
      const { listener } = listening
      await eventually('all have come', () => listener.connectionCount === 3 * CONNECTIONS)
      assert.equal(ledger.unauthenticatedConnections, CONNECTIONS)
      assert.equal(listener.waitingCount, 2 * CONNECTIONS)
      for (const socket of sockets) socket.destroy()
      await eventually('none waits', () => listener.waitingCount === 0, 15_000)
      await eventually('none is left', () => ledger.unauthenticatedConnections === 0)
    })
  }

  test('a client gets its response at once while others stop inside the handshake', async () => {
    const { listening } = await start()
    await using _ = listening
    const hello = '\x16\x03\x01\x02\x00'
    const sockets = await openMany(3 * CONNECTIONS, listening.port, hello, '127.0.0.3')
    const startedAt = performance.now()
    using client = await openClient('h2', listening.port)
    assert.equal((await client.request({})).status, 200)
    assert.ok(performance.now() - startedAt < 1500, 'no other connection had timed out yet')
    for (const socket of sockets) socket.destroy()
  })

  test('many clients that connect at once are all served, a few at a time', async () => {
    const { ledger, listening } = await start()
    await using _ = listening
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, ledger.unauthenticatedConnections)
    }, 1)
    const answers = await Promise.all(
      Array.from({ length: 10 * CONNECTIONS }, async (_, n) => {
        const client = await openClient(n % 2 === 0 ? 'h1' : 'h2', listening.port)
        const { status } = await client.request({})
        return { client, status }
      }),
    )
    clearInterval(timer)
    assert.ok(
      answers.every(({ status }) => status === 200),
      answers.map(({ status }) => status).join(),
    )
    assert.ok(most <= CONNECTIONS, `${most} at once`)
    assert.equal(listening.listener.waitingCount, 0)
    for (const { client } of answers) client[Symbol.dispose]()
  })

  test('a connection that waits too long is closed', async () => {
    const { listening } = await start({ limits: { handshakeTimeoutMs: 500 } })
    await using _ = listening
    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => RawHttp1.open(listening.port)),
    )
    const late = await open(listening.port, '')
    await Promise.race([once(late, 'close'), sleep(5000).then(() => assert.fail('not closed'))])
    for (const client of clients) client.socket.destroy()
  })
})
