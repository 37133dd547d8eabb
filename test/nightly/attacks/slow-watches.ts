/** Watches that are read slowly, each at another position of a history of large changes. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { FRAME, frame, getFrame, headerBlock, RawHttp2 } from '../../support/raw-http2.ts'
import {
  type Attack,
  FROM_ADDRESS,
  forever,
  LIST,
  type Mounted,
  SENDERS,
  type Target,
} from './attack.ts'

const AUTHORIZATION = `Bearer ${SENDERS.editor}`
const WATCHES = 600
/** More than one watch reads at a time, so that each makes the server keep as much as it can. */
const CHANGES_PER_WATCH = 3
const FILLER_BYTES = 110 * 1024
/** Enough progress not to count as a stalled reader. */
const TAKEN_BYTES = 8 * 1024
const WINDOW_MAX = 2 ** 30
/** SETTINGS_INITIAL_WINDOW_SIZE. */
const SMALL_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0x20, 0]))

export const SLOW_WATCHES: Attack = {
  name: 'watches of large changes, read slowly',
  sender: 'editor',
  run: slowWatches,
}

async function slowWatches({ port, scaled }: Target): Promise<Mounted> {
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  session.on('error', () => {})
  await once(session, 'connect')
  const name = `changed-${Date.now()}`
  const annotations = { filler: 'x'.repeat(FILLER_BYTES) }
  const made = JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: 'a', annotations },
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'example.org/attacks',
    reportingInstance: 'one',
    action: 'Act',
    reason: 'Because',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'a', name: 'p' },
  })
  let version = await versionAfter(session, {
    method: 'POST',
    path: LIST,
    type: 'application/json',
    body: made,
  })
  const watches: RawHttp2[] = []
  let serial = 0
  for (let at = 0; at < scaled(WATCHES); at++) {
    watches.push(await slowWatch(port, version))
    for (let change = 0; change < CHANGES_PER_WATCH; change++) {
      const newer = await versionAfter(session, {
        method: 'PATCH',
        path: `${LIST}/${name}`,
        type: 'application/merge-patch+json',
        body: `{"metadata":{"annotations":{"n":"${serial++}"}}}`,
      })
      if (newer !== '') version = newer
    }
  }
  const more = frame(FRAME.windowUpdate, 0, 1, increment(TAKEN_BYTES))
  void forever(async () => {
    for (const watch of watches) if (!watch.isClosed) watch.send(more)
    await sleep(1000)
  })
  return { opened: watches.length }
}

async function slowWatch(port: number, version: string): Promise<RawHttp2> {
  const client = await RawHttp2.open(port, { ...FROM_ADDRESS })
  client.send(SMALL_WINDOW, frame(FRAME.windowUpdate, 0, 0, increment(WINDOW_MAX)))
  await client.settled().catch(() => {})
  const path = `${LIST}?watch=1&resourceVersion=${version}`
  client.send(getFrame(1, path, headerBlock({ authorization: AUTHORIZATION })))
  return client
}

interface Write {
  readonly method: string
  readonly path: string
  readonly type: string
  readonly body: string
}

/** The version of the event in the response; empty when the request was rejected. */
async function versionAfter(
  session: ClientHttp2Session,
  { method, path, type, body }: Write,
): Promise<string> {
  const stream = session.request({
    ':method': method,
    ':path': path,
    authorization: AUTHORIZATION,
    'content-type': type,
  })
  stream.on('error', () => {}).end(body)
  let text = ''
  stream.setEncoding('utf8').on('data', (piece: string) => {
    // It is near the beginning, and the rest is long.
    if (text.length < 300_000) text += piece
  })
  await once(stream, 'close')
  return /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? ''
}

function increment(bytes: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(bytes)
  return payload
}
