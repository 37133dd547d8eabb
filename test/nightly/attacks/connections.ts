/** Attacks with many connections, on which few or no requests are sent. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { openTls } from '../../support/raw-http1.ts'
import { RawHttp2 } from '../../support/raw-http2.ts'
import {
  ADDRESS,
  type Attack,
  type FleetOptions,
  FROM_ADDRESS,
  fleet,
  forever,
  LIST,
  type Mounted,
  PROXY_ADDRESS,
  type Target,
} from './attack.ts'
import { bearer, ended, event, get, post } from './requests.ts'

const HTTP1 = { ...FROM_ADDRESS, ALPNProtocols: ['http/1.1'] }
const MANY = 3000
/** A few hundred a second: the test measures the cost of open connections, not of opening them. */
const PACE = { group: 5, pauseMs: 20 } as const

export const CONNECTION_ATTACKS: readonly Attack[] = [
  { name: 'silent connections, HTTP/2', sender: 'unauthenticated', run: silent },
  { name: 'TLS handshakes and nothing else', sender: 'unauthenticated', run: handshakes },
  { name: 'unfinished TLS handshakes', sender: 'unauthenticated', run: unfinishedHandshakes },
  { name: 'resets after CONNECT', sender: 'unauthenticated', run: connectResets },
  { name: 'connections without a byte', sender: 'unauthenticated', run: started('') },
  {
    name: 'unfinished PROXY headers',
    sender: 'unauthenticated',
    flags: [`--proxy-protocol-from=${PROXY_ADDRESS}`],
    run: started('PROXY TCP4 192.0.2.', PROXY_ADDRESS),
  },
  { name: 'long responses, HTTP/1.1', sender: 'reader', run: longResponses },
  { name: 'long responses, HTTP/2', sender: 'reader', run: longHttp2Responses },
  { name: 'requests sent ahead, none read', sender: 'reader', run: pipelined },
  { name: 'overload, HTTP/1.1', sender: 'reader', run: overload },
  { name: 'slow bodies, HTTP/1.1', sender: 'editor', run: slowBodies },
  { name: 'bodies of clients that leave', sender: 'editor', run: leaving },
  {
    name: 'small patches to a large event',
    sender: 'editor',
    etcdArgs: [`--quota-backend-bytes=${256 * 1024 * 1024}`],
    tickMsMax: 50,
    run: patches,
  },
]

function many({ scaled }: Target): FleetOptions {
  return { size: scaled(MANY), ...PACE }
}

function silent(target: Target): Promise<Mounted> {
  return fleet(many(target), () => RawHttp2.open(target.port, { ...FROM_ADDRESS }))
}

function handshakes(target: Target): Promise<Mounted> {
  return fleet(many(target), async () => {
    const socket = await openTls(target.port, { ...FROM_ADDRESS })
    socket.resume()
    return kept(socket)
  })
}

/** The server has replied to the first message, and waits for the second. */
async function unfinishedHandshakes(target: Target): Promise<Mounted> {
  const hello = await clientHello()
  return fleet(many(target), async () => {
    const socket = await openTcp(target.port)
    socket.write(hello)
    await once(socket, 'data')
    return kept(socket)
  })
}

function started(bytes: string, from: string = ADDRESS): Attack['run'] {
  return (target) =>
    fleet(many(target), async () => {
      const socket = await openTcp(target.port, from)
      socket.resume()
      if (bytes !== '') socket.write(bytes)
      return kept(socket)
    })
}

/** One long response on each of many connections, which then stay open. */
function longResponses({ port, scaled }: Target): Promise<Mounted> {
  return fleet({ size: scaled(500), group: 1, pauseMs: 10 }, async () => {
    const socket = await openTls(port, HTTP1)
    socket.write(get('reader'))
    await ended(socket)
    return kept(socket)
  })
}

function longHttp2Responses({ port, scaled }: Target): Promise<Mounted> {
  return fleet({ size: scaled(500), group: 1, pauseMs: 10 }, async () => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      rejectUnauthorized: false,
      ...FROM_ADDRESS,
      settings: { initialWindowSize: 4 * 1024 * 1024 },
    })
    session.on('error', () => {})
    await once(session, 'connect')
    session.setLocalWindowSize(8 * 1024 * 1024)
    const stream = session.request({ ':path': LIST, authorization: bearer('reader') })
    stream.on('error', () => {}).resume()
    await once(stream, 'close')
    return keptSession(session)
  })
}

/** Sends as many requests at once as a connection may have in flight, and reads no response. */
function pipelined({ port, scaled }: Target): Promise<Mounted> {
  return fleet({ size: scaled(200), group: 1, pauseMs: 20 }, async () => {
    const socket = await openTls(port, HTTP1)
    socket.pause()
    socket.write(get('reader').repeat(100))
    return kept(socket)
  })
}

/** Sends the next request as soon as a response has been read. */
function overload({ port, scaled }: Target): Promise<Mounted> {
  return fleet({ size: scaled(200), group: 5, pauseMs: 20 }, async () => {
    const socket = await openTls(port, HTTP1)
    void (async () => {
      while (!socket.destroyed) {
        socket.write(get('reader'))
        await ended(socket)
      }
    })()
    return kept(socket)
  })
}

async function slowBodies({ port, scaled }: Target): Promise<Mounted> {
  const sockets: Socket[] = []
  const mounted = await fleet({ size: scaled(1000), ...PACE }, async () => {
    const socket = await openTls(port, HTTP1)
    socket.resume()
    socket.write(post(1_000_000))
    socket.write(Buffer.alloc(200_000, ' '))
    sockets.push(socket)
    return kept(socket)
  })
  void forever(async () => {
    for (const socket of sockets) if (!socket.destroyed) socket.write(' ')
    await sleep(1000)
  })
  return mounted
}

/** Twenty a second; each disconnects when nearly all of its body has been sent. */
async function leaving({ port, scaled }: Target): Promise<Mounted> {
  let opened = 0
  const one = async (): Promise<void> => {
    const socket = await openTls(port, HTTP1)
    socket.resume()
    opened += 1
    socket.write(post(1_000_000))
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
      socket.write(Buffer.alloc(900_000, ' '), () => resolve())
    })
    socket.destroy()
  }
  const step = async (): Promise<void> => {
    await Promise.allSettled(Array.from({ length: scaled(10) }, one))
    await sleep(450)
  }
  await step()
  void forever(step)
  return { opened }
}

/** A hundred a second; each resets its connection while the server sends its refusal. */
async function connectResets({ port, scaled }: Target): Promise<Mounted> {
  let opened = 0
  const one = async (): Promise<void> => {
    const tcp = await openTcp(port)
    const socket = connectTls({ socket: tcp, rejectUnauthorized: false })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'secureConnect'), once(tcp, 'close')])
    opened += 1
    socket.write('CONNECT db.example:443 HTTP/1.1\r\nHost: db.example\r\n\r\n', () =>
      tcp.resetAndDestroy(),
    )
  }
  const step = async (): Promise<void> => {
    await Promise.allSettled(Array.from({ length: scaled(50) }, one))
    await sleep(450)
  }
  await step()
  void forever(step)
  return { opened }
}

async function patches({ port }: Target): Promise<Mounted> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  session.on('error', () => {})
  await once(session, 'connect')
  const send = async (method: string, path: string, type: string, body: string) => {
    const stream = session.request({
      ':method': method,
      ':path': path,
      authorization: bearer('editor'),
      'content-type': type,
    })
    stream.on('error', () => {}).resume()
    stream.end(body)
    const [headers] = await once(stream, 'response')
    return Number(headers[':status'])
  }
  const name = `large-${Date.now()}`
  const filler = { name, namespace: 'a', annotations: { filler: 'x'.repeat(120 * 1024) } }
  const created = await send('POST', LIST, 'application/json', JSON.stringify(event(filler)))
  if (created !== 201) throw new Error(`the large event was not created: ${created}`)
  let serial = 0
  for (let worker = 0; worker < 4; worker++) {
    void forever(async () => {
      const patch = `{"metadata":{"annotations":{"n":"${serial++}"}}}`
      await send('PATCH', `${LIST}/${name}`, 'application/merge-patch+json', patch)
    })
  }
  return { opened: 1 }
}

async function openTcp(port: number, localAddress: string = ADDRESS): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The first message of a TLS client. */
async function clientHello(): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      resolve(chunk)
      done()
    },
  })
  const client = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  client.on('error', () => {})
  const hello = await promise
  client.destroy()
  return hello
}

function kept(socket: Socket): { close(): void; readonly isClosed: boolean } {
  return {
    close: () => socket.destroy(),
    get isClosed() {
      return socket.destroyed
    },
  }
}

function keptSession(session: ClientHttp2Session): { close(): void; readonly isClosed: boolean } {
  return {
    close: () => session.destroy(),
    get isClosed() {
      return session.destroyed
    },
  }
}
