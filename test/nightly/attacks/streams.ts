/** Attacks with many HTTP/2 requests on each connection. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  FLAG,
  FRAME,
  frame,
  headerBlock,
  postFrame,
  RawHttp2,
  requestFields,
  resetFrame,
} from '../../support/raw-http2.ts'
import { type Attack, FROM_ADDRESS, fleet, forever, LIST, SENDERS, type Sender } from './attack.ts'

const WATCH = `${LIST}?watch=1&resourceVersion=0`
/** SETTINGS_INITIAL_WINDOW_SIZE of 0: response bodies cannot be sent. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
/** The newest entry of the dynamic table of HPACK. */
const NEWEST = Buffer.from([0x80 | 62])
const ENTRY_BYTES = 4000
/** As many references as fit into the headers of a request. */
const REFERENCES = 31
const CONNECTIONS = 100
const STREAMS = 100
const PAUSE_MS = 20
const CANCEL = 8

/** Long fields take at most a hundred bytes on the wire after the first. */
interface Expanded {
  readonly header: string
  readonly references: number
}

const ACCEPT: Expanded = { header: 'accept', references: REFERENCES }
/** Less than the memory that is charged for a waiting request. */
const LONGEST_ACCEPT: Expanded = { header: 'accept', references: 1 }
const OTHER: Expanded = { header: 'x-other', references: 25 }

export const STREAM_ATTACKS: readonly Attack[] = [
  ...(['unauthenticated', 'no rights'] as const).flatMap((sender) => [
    unread('unread errors, expanded Accept', sender, LIST, ACCEPT),
    unread('unread errors, longest Accept', sender, LIST, LONGEST_ACCEPT),
    unread('unread errors, other header', sender, LIST, OTHER),
  ]),
  { name: 'streams in sequence, none read', sender: 'no rights', run: sequence('no rights') },
  unread('unread lists, then many that wait', 'reader', LIST, OTHER),
  unread('unread metrics', 'reader', '/metrics', undefined),
  watches('watches, expanded Accept', { ...ACCEPT, references: 30 }),
  watches('watches, other header', OTHER),
  { name: 'watches, selectors of 60 KB', sender: 'reader', run: selectors(60_000) },
  { name: 'watches, longest selectors', sender: 'reader', run: selectors(7500) },
  { name: 'slow bodies, HTTP/2', sender: 'editor', run: slowBodies('editor') },
  { name: 'slow bodies, HTTP/2', sender: 'unauthenticated', run: slowBodies('unauthenticated') },
]

function unread(
  name: string,
  sender: Sender,
  path: string,
  expanded: Expanded | undefined,
): Attack {
  return { name, sender, run: requests({ sender, path, isShut: true, expanded }) }
}

function watches(name: string, expanded: Expanded): Attack {
  return {
    name,
    sender: 'reader',
    run: requests({ sender: 'reader', path: WATCH, isShut: false, expanded }),
  }
}

interface Requests {
  readonly sender: Sender
  readonly path: string
  readonly isShut: boolean
  readonly expanded: Expanded | undefined
}

/**
 * As many requests on each connection as are allowed, with headers that are short only on the wire.
 */
function requests({ sender, path, isShut, expanded }: Requests): Attack['run'] {
  const fields = { ...requestFields('GET', path), ...authorization(sender) }
  const plain = headerBlock(
    expanded?.header === 'accept' ? fields : { ...fields, accept: 'application/json' },
  )
  const request = (stream: number): Buffer => {
    const long: Buffer[] = []
    for (let at = 0; at < (expanded?.references ?? 0); at++) {
      const isFirst = stream === 1 && at === 0
      long.push(isFirst ? indexed(expanded?.header ?? '', 'v'.repeat(ENTRY_BYTES)) : NEWEST)
    }
    return frame(
      FRAME.headers,
      FLAG.endHeaders | FLAG.endStream,
      stream,
      Buffer.concat([plain, ...long]),
    )
  }
  const all = Buffer.concat(Array.from({ length: STREAMS }, (_, n) => request(1 + 2 * n)))
  return ({ port, scaled }) =>
    fleet({ size: scaled(CONNECTIONS), group: 1, pauseMs: PAUSE_MS }, async () => {
      const client = await settledClient(port, isShut)
      client.send(all)
      return client
    })
}

/**
 * One stream after the other on each connection; the client resets each before its response is
 * sent.
 */
function sequence(sender: Sender): Attack['run'] {
  const block = headerBlock({
    ...requestFields('GET', LIST),
    ...authorization(sender),
    accept: 'v'.repeat(ENTRY_BYTES),
  })
  const openMax = 50
  return async ({ port, scaled }) => {
    const clients: { raw: RawHttp2; stream: number }[] = []
    const mounted = await fleet(
      { size: scaled(CONNECTIONS), group: 1, pauseMs: PAUSE_MS },
      async () => {
        const raw = await settledClient(port, true)
        clients.push({ raw, stream: 1 })
        return raw
      },
    )
    void forever(async () => {
      for (const client of clients) {
        if (client.raw.isClosed) continue
        const { stream } = client
        client.stream += 2
        const old = stream - 2 * openMax
        client.raw.send(
          frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, block),
          ...(old > 0 ? [resetFrame(old, CANCEL)] : []),
        )
      }
      await sleep(PAUSE_MS)
    })
    return mounted
  }
}

/** Each watch has its own long selector, so that no two can share one. */
function selectors(bytes: number): Attack['run'] {
  return ({ port, scaled }) =>
    fleet(
      { size: scaled(CONNECTIONS), group: 1, pauseMs: PAUSE_MS },
      async (connection: number) => {
        const client = await settledClient(port, false)
        for (let n = 0; n < STREAMS && !client.isClosed; n++) {
          const block = headerBlock({
            ...requestFields(
              'GET',
              `${WATCH}&labelSelector=${selector(`${connection}-${n}`, bytes)}`,
            ),
            ...authorization('reader'),
          })
          client.send(...inFrames(1 + 2 * n, block))
          await sleep(8)
        }
        return client
      },
    )
}

/** Makes a selector with the maximum number of values, so that its length is what counts. */
function selector(own: string, bytes: number): string {
  const values = [own]
  for (let n = 0, length = 0; length < bytes; n++) {
    const value = n.toString(36).padStart(bytes > 10_000 ? 1 : 8, 'v')
    values.push(value)
    length += value.length + 1
  }
  return `k+notin+(${values.join(',')})`
}

function inFrames(stream: number, block: Buffer): readonly Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < block.length; at += 16_000) {
    const isLast = at + 16_000 >= block.length
    const flags = (isLast ? FLAG.endHeaders : 0) | (at === 0 ? FLAG.endStream : 0)
    const type = at === 0 ? FRAME.headers : FRAME.continuation
    frames.push(frame(type, flags, stream, block.subarray(at, at + 16_000)))
  }
  return frames
}

/** Fills the windows of the connection at once; after that sends a little now and then. */
function slowBodies(sender: Sender): Attack['run'] {
  const first = Buffer.alloc(10_000, ' ')
  const headers = {
    ...authorization(sender),
    'content-type': 'application/json',
    'content-length': '1000000',
  }
  return async ({ port, scaled }) => {
    const clients: RawHttp2[] = []
    const mounted = await fleet(
      { size: scaled(10 * CONNECTIONS), group: 5, pauseMs: PAUSE_MS },
      async () => {
        const client = await settledClient(port, false)
        clients.push(client)
        const streams = Array.from({ length: STREAMS }, (_, n) => 1 + 2 * n)
        const data = streams.map((stream) => frame(FRAME.data, 0, stream, first))
        client.send(...streams.map((stream) => postFrame(stream, LIST, headers)), ...data)
        return client
      },
    )
    let turn = 0
    void forever(async () => {
      const stream = 1 + 2 * (turn++ % STREAMS)
      for (const client of clients) {
        if (!client.isClosed) client.send(frame(FRAME.data, 0, stream, first.subarray(0, 100)))
      }
      await sleep(1000)
    })
    return mounted
  }
}

async function settledClient(port: number, isShut: boolean): Promise<RawHttp2> {
  const client = await RawHttp2.open(port, { ...FROM_ADDRESS })
  if (isShut) client.send(NO_WINDOW)
  await client.settled().catch(() => {})
  return client
}

function authorization(sender: Sender): Record<string, string> {
  const token = SENDERS[sender]
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
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
