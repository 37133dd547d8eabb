import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import {
  FLAG,
  FRAME,
  frame,
  getFrame,
  headerBlock,
  longField,
  postFrame,
  RawHttp2,
  requestFields,
  resetFrame,
} from './raw-http2.ts'

/**
 * Clients that send far more than they read. They run in their own process, since the work of
 * flooding would otherwise be measured as latency of the server:
 *
 *   node test/support/flooder.ts <kind> <port>
 *
 * prints one line of JSON when its time is over.
 */

export type FloodKind = (typeof FLOOD_KINDS)[number]

export const FLOOD_KINDS = [
  'rapid-reset',
  'post-reset',
  'ping',
  'settings',
  'continuation',
  'empty-data',
  'references',
  'references-unsettled',
] as const

export interface FloodReport {
  /** Connections that sent everything, or were cut before. */
  readonly connections: number
  readonly cut: number
  /** The most frames that one connection could send. */
  readonly framesMax: number
  /** Why the server cut them, if it said so: error codes of its GOAWAY frames. */
  readonly codes: readonly number[]
}

const CONNECTIONS = 2
const FRAMES_MAX = 10_000
const BATCH = 100
const FLOOD_MS = 2000
/** How long a connection that has sent everything waits to be cut. */
const AFTERMATH_MS = 3000

/** What to send first, and the n-th frame of the flood. */
interface Flood {
  opening(): readonly Buffer[]
  nth(n: number): Buffer
  /** This client never acknowledges the server's settings. */
  readonly isUnsettled?: boolean
}

const REFERENCE = Buffer.from([0x80 | 62])
/**
 * One long field that goes into the dynamic table, then frames that reference it a thousand times.
 */
const references = {
  opening: () => [getFrame(1, '/', longField(3900))],
  nth: (n: number) => getFrame(2 * n + 3, '/', Buffer.concat(Array(16_000).fill(REFERENCE))),
}

const floods: Readonly<Record<FloodKind, Flood>> = {
  'rapid-reset': {
    opening: () => [],
    nth: (n: number) => Buffer.concat([getFrame(2 * n + 1), resetFrame(2 * n + 1, 8)]),
  },
  'post-reset': {
    opening: () => [],
    nth: (n: number) => Buffer.concat([postFrame(2 * n + 1), resetFrame(2 * n + 1, 0)]),
  },
  ping: { opening: () => [], nth: () => frame(FRAME.ping, 0, 0, Buffer.alloc(8)) },
  settings: { opening: () => [], nth: () => frame(FRAME.settings, 0, 0) },
  continuation: {
    opening: () => [
      frame(FRAME.headers, FLAG.endStream, 1, headerBlock(requestFields('GET', '/'))),
    ],
    nth: (n: number) =>
      frame(FRAME.continuation, 0, 1, headerBlock({ [`x-${n}`]: 'x'.repeat(100) })),
  },
  'empty-data': {
    opening: () => [postFrame(1)],
    nth: () => frame(FRAME.data, 0, 1),
  },
  references,
  'references-unsettled': { ...references, isUnsettled: true },
}

async function flood(kind: FloodKind, port: number): Promise<FloodReport> {
  const endsAt = Date.now() + FLOOD_MS
  const rounds: { isCut: boolean; frames: number; code: number | undefined }[] = []
  const again = async (): Promise<void> => {
    while (Date.now() < endsAt) rounds.push(await floodOnce(kind, port))
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, again))
  return {
    connections: rounds.length,
    cut: rounds.filter((round) => round.isCut).length,
    framesMax: Math.max(...rounds.map((round) => round.frames)),
    codes: [...new Set(rounds.flatMap((round) => round.code ?? []))],
  }
}

async function floodOnce(
  kind: FloodKind,
  port: number,
): Promise<{ isCut: boolean; frames: number; code: number | undefined }> {
  const { opening, nth, isUnsettled = false } = floods[kind]
  const client = await RawHttp2.open(port, { acknowledge: !isUnsettled })
  client.send(...opening())
  let frames = 0
  while (frames < FRAMES_MAX && !client.isClosed) {
    const batch = Array.from({ length: BATCH }, (_, index) => nth(frames + index))
    client.send(...batch)
    frames += BATCH
    if (client.socket.writableNeedDrain) await drained(client)
    else await sleep(0)
  }
  await Promise.race([client.closed, sleep(AFTERMATH_MS)])
  const goaway = client.frames.findLast((one) => one.type === FRAME.goaway)
  client.close()
  return { isCut: client.isClosed, frames, code: goaway?.payload.readUInt32BE(4) }
}

function drained(client: RawHttp2): Promise<unknown> {
  const drain = new Promise<void>((resolve) => client.socket.once('drain', () => resolve()))
  return Promise.race([drain, client.closed, sleep(AFTERMATH_MS)])
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , kind, port] = process.argv
  const report = await flood(kind as FloodKind, Number(port))
  process.stdout.write(`${JSON.stringify(report)}\n`)
  process.exit(0)
}
