/**
 * Clients that leave: by a reset, a half-close or a close, at every point of a connection. An error
 * that nobody listens for would end the process, and fails the test here.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Handler, Response } from '../../../src/http/exchange.ts'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../../../src/lib/client-memory/ledger.ts'
import { eventually } from '../../support/eventually.ts'
import { startListener, startPlainListener, text } from '../../support/listener.ts'
import { requestHead } from '../../support/raw-http1.ts'
import {
  FLAG,
  FRAME,
  frame,
  getFrame,
  headerBlock,
  postFrame,
  requestFields,
  resetFrame,
} from '../../support/raw-http2.ts'

/** Time for the server to act on what it was sent. */
const ACT_MS = 40

const DEPARTURES: Readonly<Record<string, (tcp: Socket, top: Socket) => Promise<void> | void>> = {
  'resets at once': (tcp) => void tcp.resetAndDestroy(),
  resets: async (tcp) => {
    await sleep(ACT_MS)
    tcp.resetAndDestroy()
  },
  'closes its half': async (_tcp, top) => {
    await sleep(ACT_MS)
    top.end()
  },
  'closes its half, then resets': async (tcp, top) => {
    top.end()
    await sleep(ACT_MS)
    tcp.resetAndDestroy()
  },
  closes: async (_tcp, top) => {
    await sleep(ACT_MS)
    top.destroy()
  },
}

const CHUNKED = { 'transfer-encoding': 'chunked' }
const CONNECT = 'CONNECT db.example:443 HTTP/1.1\r\nHost: db.example:443\r\n\r\n'

function head(method: string, path: string, headers: Record<string, string> = {}): string {
  return requestHead({ method, path, headers })
}

const HTTP1_POINTS: Readonly<Record<string, string>> = {
  'before the first byte': '',
  'within the request line': 'GET /te',
  'within the headers': 'GET /text HTTP/1.1\r\nHost: local',
  'after the headers': head('GET', '/text'),
  'while the handler runs': head('GET', '/wait'),
  'while pipelined requests wait': head('GET', '/wait') + head('GET', '/text').repeat(3),
  'within a body that is read': `${head('POST', '/body', { 'content-length': '9' })}abc`,
  'within a body that nobody reads': `${head('POST', '/text', { 'content-length': '9' })}abc`,
  'within a body of a slow handler': `${head('POST', '/wait', { 'content-length': '9' })}abc`,
  'within the length of a chunk': `${head('POST', '/body', CHUNKED)}1`,
  'within a chunk': `${head('POST', '/body', CHUNKED)}5\r\nab`,
  'within the trailers': `${head('POST', '/body', CHUNKED)}0\r\nx-tra`,
  'after a malformed chunk': `${head('POST', '/body', CHUNKED)}zz\r\n`,
  'within a response': head('GET', '/stream'),
  'within a response after pipelined ones': head('GET', '/text') + head('GET', '/stream'),
  'before a body that is expected': head('POST', '/body', {
    'content-length': '9',
    expect: '100-continue',
  }),
  'within a body that was expected': `${head('POST', '/body', { 'content-length': '9', expect: '100-continue' })}abc`,
  'after an unknown expectation': head('POST', '/body', {
    'content-length': '9',
    expect: 'the-unexpected',
  }),
  'after an upgrade': head('GET', '/text', { connection: 'upgrade', upgrade: 'websocket' }),
  'after an upgrade to HTTP/2': head('GET', '/stream', {
    connection: 'upgrade, http2-settings',
    upgrade: 'h2c',
    'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
  }),
  'after an upgrade with a body': `${head('POST', '/body', {
    connection: 'upgrade',
    upgrade: 'websocket',
    'content-length': '9',
  })}abc`,
  'within a CONNECT': CONNECT.slice(0, 40),
  'after a CONNECT': CONNECT,
  'after a CONNECT with bytes for its target': `${CONNECT}${'x'.repeat(100_000)}`,
  'after a CONNECT with a body': `${head('CONNECT', 'db.example:443', { 'content-length': '9' })}abc`,
  'after two CONNECTs': CONNECT + CONNECT,
  'after a CONNECT behind a request': head('GET', '/text') + CONNECT,
  'after a CONNECT behind a slow request': head('GET', '/wait') + CONNECT,
  'after a CONNECT behind a response': head('GET', '/stream') + CONNECT,
  'after a request that is not HTTP': 'hello\r\n\r\n',
  'after the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'after two Host headers': 'GET /text HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const GREETING = Buffer.concat([
  PREFACE,
  frame(FRAME.settings, 0, 0),
  frame(FRAME.settings, FLAG.ack, 0),
])

function greeted(...frames: readonly Uint8Array[]): Buffer {
  return Buffer.concat([GREETING, ...frames])
}

function fields(all: Readonly<Record<string, string>>, flags: number = FLAG.endHeaders): Buffer {
  return frame(FRAME.headers, flags, 1, headerBlock(all))
}

const BODY_PART = frame(FRAME.data, 0, 1, Buffer.from('abc'))
const EXTENDED_CONNECT = {
  ...requestFields('CONNECT', '/text'),
  ':protocol': 'websocket',
}

const HTTP2_POINTS: Readonly<Record<string, Buffer>> = {
  'before the first byte': Buffer.alloc(0),
  'within the preface': PREFACE.subarray(0, 10),
  'after the preface': greeted(),
  'within a frame': greeted(getFrame(1, '/text').subarray(0, 20)),
  'within the headers': greeted(fields(requestFields('GET', '/text'), FLAG.endStream)),
  'after the headers': greeted(getFrame(1, '/text')),
  'while the handler runs': greeted(getFrame(1, '/wait')),
  'while many handlers run': greeted(...[1, 3, 5, 7, 9].map((id) => getFrame(id, '/wait'))),
  'before a body': greeted(postFrame(1, '/body')),
  'within a body that is read': greeted(postFrame(1, '/body'), BODY_PART),
  'within a body that nobody reads': greeted(postFrame(1, '/text'), BODY_PART),
  'within a body of a slow handler': greeted(postFrame(1, '/wait'), BODY_PART),
  'before the trailers': greeted(postFrame(1, '/body'), BODY_PART, fields({ 'x-trailer': 'y' }, 0)),
  'within a response': greeted(getFrame(1, '/stream')),
  'within responses': greeted(...[1, 3, 5, 7, 9].map((id) => getFrame(id, '/stream'))),
  'after a reset of the stream': greeted(getFrame(1, '/stream'), resetFrame(1, 8)),
  'after a reset within a body': greeted(postFrame(1, '/body'), BODY_PART, resetFrame(1, 8)),
  'after GOAWAY': greeted(getFrame(1, '/wait'), frame(FRAME.goaway, 0, 0, Buffer.alloc(8))),
  'before a body that is expected': greeted(postFrame(1, '/body', { expect: '100-continue' })),
  'after an unknown expectation': greeted(postFrame(1, '/body', { expect: 'the-unexpected' })),
  'after an upgrade': greeted(
    fields({ ...requestFields('GET', '/text'), connection: 'upgrade', upgrade: 'websocket' }),
  ),
  'after a CONNECT': greeted(fields({ ':method': 'CONNECT', ':authority': 'db.example:443' })),
  'after a CONNECT with bytes for its target': greeted(
    fields({ ':method': 'CONNECT', ':authority': 'db.example:443' }),
    BODY_PART,
  ),
  'after an extended CONNECT': greeted(fields(EXTENDED_CONNECT)),
  'after an extended CONNECT with bytes': greeted(fields(EXTENDED_CONNECT), BODY_PART),
  'after an unknown frame type': greeted(frame(0xbe, 0, 1, Buffer.alloc(8))),
  'after a frame for a closed stream': greeted(frame(FRAME.data, 0, 7, Buffer.from('abc'))),
  'after a request of HTTP/1.1': Buffer.from(head('GET', '/text')),
}

/** Sends nothing of its own to clients that have left. */
class Handlers {
  running = 0

  readonly handle: Handler = async (request) => {
    this.running += 1
    try {
      request.memory?.own('ann')
      if (request.path === '/wait') await once(request.signal, 'abort')
      if (request.path === '/body') await request.body().catch(() => {})
      return request.path === '/stream' ? streamed() : text(200, 'ok')
    } finally {
      this.running -= 1
    }
  }
}

/** More than sockets buffer, so that the response never ends. */
function streamed(): Response {
  return {
    status: 200,
    headers: {},
    body: (async function* () {
      for (;;) yield Buffer.alloc(64 * 1024, 'x')
    })(),
  }
}

const HELLO = '\x16\x03\x01\x02\x00'
const PROXY_HEADER = 'PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n'

/** Below TLS, on a listener that takes 127.0.0.1 for a proxy. */
const PROXY_POINTS: Readonly<Record<string, string>> = {
  'before the first byte': '',
  'within the PROXY header': PROXY_HEADER.slice(0, 20),
  'after the PROXY header': PROXY_HEADER,
  'within the handshake': PROXY_HEADER + HELLO,
  'after a malformed PROXY header': 'hello\r\n',
}

const TCP_POINTS: Readonly<Record<string, string>> = {
  'before the first byte': '',
  'within the handshake': HELLO,
  'after plain HTTP': head('GET', '/text'),
  'after a plain CONNECT': CONNECT,
  'after what is not TLS': 'x'.repeat(1000),
}

interface Transport {
  readonly name: string
  readonly isPlain?: boolean
  /** If undefined, the bytes are sent below TLS. */
  readonly alpn?: readonly string[]
  readonly proxies?: { readonly from: readonly string[] }
  /** Another connection takes the only place, so that the client waits unread. */
  readonly waits?: boolean
  readonly points: Readonly<Record<string, string | Buffer>>
}

const TRANSPORTS: readonly Transport[] = [
  { name: 'plain HTTP/1.1', isPlain: true, points: HTTP1_POINTS },
  { name: 'HTTP/1.1 and TLS', alpn: ['http/1.1'], points: HTTP1_POINTS },
  { name: 'HTTP/2 and TLS', alpn: ['h2'], points: HTTP2_POINTS },
  { name: 'TCP, to a TLS listener', points: TCP_POINTS },
  { name: 'TCP, while others are served', waits: true, points: TCP_POINTS },
  { name: 'TCP, as a proxy', proxies: { from: ['127.0.0.1'] }, points: PROXY_POINTS },
]

/** Short, so that clients that no longer read are noticed within the test. */
const LIMITS = { stalledTimeoutMs: 500, handshakeTimeoutMs: 500 }
const NOTICED_MS = 8000

/** The TCP socket, and the socket that requests are written to. */
async function open(port: number, { alpn }: Transport): Promise<[Socket, Socket]> {
  const tcp = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  tcp.on('error', () => {})
  await once(tcp, 'connect')
  if (alpn === undefined) return [tcp, tcp]
  const top = connectTls({ socket: tcp, rejectUnauthorized: false, ALPNProtocols: [...alpn] })
  await once(top, 'secureConnect')
  top.on('error', () => {})
  return [tcp, top]
}

async function depart(
  transport: Transport,
  bytes: string | Buffer,
  leave: (tcp: Socket, top: Socket) => Promise<void> | void,
): Promise<void> {
  const handlers = new Handlers()
  const { isPlain = false, waits = false, proxies } = transport
  const ledger = new MemoryLedger({
    ...DEFAULT_LEDGER_LIMITS,
    ...(waits && { unauthenticatedConnections: 1 }),
  })
  const start = isPlain ? startPlainListener : startListener
  await using server = await start(handlers.handle, {
    ledger,
    limits: LIMITS,
    ...(proxies !== undefined && { proxies }),
  })
  if (waits) {
    const [first] = await open(server.port, transport)
    first.once('end', () => first.end()).resume()
  }
  const [tcp, top] = await open(server.port, transport)
  if (bytes.length > 0) await new Promise((resolve) => top.write(bytes, resolve))
  await leave(tcp, top)
  const { listener } = server
  await eventually('the connection is closed', () => listener.connectionCount === 0, NOTICED_MS)
  await eventually('no handler runs', () => handlers.running === 0)
  await eventually('nothing is held', () => ledger.totalBytes === 0)
  assert.equal(ledger.unauthenticatedConnections, 0)
  assert.equal(ledger.unauthenticatedBytes, 0)
  await listener.quiet()
  ledger.sweep()
  assert.equal(ledger.users, 0, 'no user has a connection')
  assert.deepEqual(server.bugs, [])
  tcp.destroy()
}

for (const transport of TRANSPORTS) {
  describe(`over ${transport.name}`, { concurrency: 16 }, () => {
    for (const [point, bytes] of Object.entries(transport.points)) {
      for (const [departure, leave] of Object.entries(DEPARTURES)) {
        test(`a client ${departure} ${point}`, () => depart(transport, bytes, leave))
      }
    }
  })
}
