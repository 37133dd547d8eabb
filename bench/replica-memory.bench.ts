/**
 * Memory of a replica while it serves: writes events of 900 bytes through its API, lists them in
 * two formats, then leaves it idle, and prints its memory at each step.
 *
 *   npm run bench -- replica                       123,000 events, 12 minutes of rest
 *   node bench/replica-memory.bench.ts 20000 1  as many, and one minute
 *
 * The server takes NODE_OPTIONS from the environment, such as --max-semi-space-size=8.
 */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Replicas } from '../test/support/replicas.ts'
import { benchEvent } from './memory/events.ts'

const [countText = '123000', restText = '12'] = process.argv.slice(2)
const count = Number(countText)
const restMinutes = Number(restText)
const writersAtOnce = 80
const listRounds = 5
/** Statuses of a server on a busy machine. */
const LATER = new Set([429, 503, 504])
/** The unit of CPU time of the kernel. */
const TICKS_PER_SECOND = 100

await using replicas = await Replicas.start(1, [
  '--max-mutating-requests-inflight=0',
  '--max-requests-inflight=0',
  '--max-write-bytes-per-second=0',
])
const pid = replicas.server(0).process.pid ?? 0
const client = await replicas.client(0)
say(`${count} events of ${benchEvent(0).body.length} bytes`)
await printMemory('started')
await load()
await printMemory('loaded')
for (let round = 0; round < listRounds; round++) {
  for (const accept of ['application/json', 'application/vnd.kubernetes.protobuf']) {
    await client.request({ path: '/apis/events.k8s.io/v1/events', headers: { accept } })
  }
}
await printMemory('listed')
for (let minute = 1; minute <= restMinutes; minute++) {
  await sleep(60_000)
  await printMemory(`after ${minute} min of rest`)
}

async function load(): Promise<void> {
  let next = 0
  const writer = async (): Promise<void> => {
    while (next < count) {
      const { key, body: stored } = benchEvent(next++)
      const body = creatable(stored)
      const path = `/apis/events.k8s.io/v1/namespaces/${key.namespace}/events`
      const headers = { 'content-type': 'application/json' }
      for (;;) {
        const { status } = await client.request({ method: 'POST', path, headers, body })
        // The name exists: an earlier attempt with an unknown result was applied.
        if (status === 201 || status === 409) break
        if (!LATER.has(status)) throw new Error(`a create got status ${status}`)
        await sleep(100)
      }
    }
  }
  await Promise.all(Array.from({ length: writersAtOnce }, writer))
}

/**
 * Without the fields of older events, which a create may not set; the note makes up for their size.
 */
function creatable(stored: Buffer): string {
  const event: Record<string, unknown> = JSON.parse(stored.toString())
  for (const name of Object.keys(event)) if (name.startsWith('deprecated')) delete event[name]
  return JSON.stringify({ ...event, note: `${event['note']} ${'.'.repeat(100)}` })
}

async function printMemory(when: string): Promise<void> {
  const [status, stat, metrics] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8'),
    readFile(`/proc/${pid}/stat`, 'utf8'),
    replicas.server(0).ask('/metrics'),
  ])
  const metric = (name: string): number =>
    Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics.body)?.[1])
  const mib = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`
  const rss = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
  const [user = 0, system = 0] = stat.split(' ').slice(13, 15).map(Number)
  say(
    `${when}: ${mib(rss)} (events ${mib(metric('tidings_memory_event_bytes'))}, ` +
      `history ${mib(metric('tidings_history_bytes'))}, ` +
      `lists ${mib(metric('tidings_list_kept_bytes'))}, ` +
      `heap ${mib(metric('nodejs_heap_size_used_bytes'))} of ${mib(metric('nodejs_heap_size_total_bytes'))}), ` +
      `CPU ${((user + system) / TICKS_PER_SECOND).toFixed(0)} s`,
  )
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
