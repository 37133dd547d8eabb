/**
 * A million events in the cache of one replica: their memory, the time until they are loaded, the
 * speed of reads, and ten thousand watchers beside them. Writes them into a real etcd first, then
 * measures in a separate process.
 *
 *   npm run bench -- memory                1,000,000 events
 *   node bench/memory.bench.ts 100000
 *   npm run bench -- memory 300000 load    only the load, as a stream and in ranges by turns
 */
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { EtcdClient } from '../src/etcd/client.ts'
import { EtcdStorage } from '../src/storage/etcd/etcd-storage.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { benchEvent } from './memory/events.ts'
import type { LoadCost } from './memory/load-cost.ts'
import type { Done, Order } from './memory/orders.ts'

const count = Number(process.argv[2] ?? 1_000_000)
const isLoadOnly = process.argv[3] === 'load'
const writersAtOnce = 1_000
const loadRounds = 5
/** The unit of CPU time of the kernel. */
const ticksPerSecond = 100

await using etcd = await startEtcd({
  args: [`--quota-backend-bytes=${8 * 1024 ** 3}`, '--snapshot-count=100000'],
})
const endpoint = etcd.endpoints[0] ?? ''
using client = closing(new EtcdClient({ ...etcd, defaultTimeoutMs: 10_000 }))
const storage = new EtcdStorage({
  client: client.value,
  prefix: '/registry',
  onCorrupt: (key) => say(`not an event: ${key}`),
})

await load()
if (isLoadOnly) for (let round = 0; round < loadRounds; round++) await compareLoads(round)
else await measure()

async function measure(): Promise<void> {
  const measuring = fork(new URL('./memory/measure.ts', import.meta.url), [endpoint, String(count)])
  measuring.on('message', async (order: Order) => {
    measuring.send(await carryOut(order))
  })
  const [code] = await once(measuring, 'exit')
  process.exitCode = code ?? 1
}

/** Loads the events in both ways, and the first one last in every other round. */
async function compareLoads(round: number): Promise<void> {
  const ways = ['stream', 'ranges']
  for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
    const program = fileURLToPath(new URL('./memory/load-cost.ts', import.meta.url))
    const before = await cpuSecondsOf(etcd.member(0).pid)
    const { stdout } = await promisify(execFile)(process.execPath, [program, endpoint, way])
    const etcdSeconds = (await cpuSecondsOf(etcd.member(0).pid)) - before
    const { seconds, cpuSeconds, mostMib, streams }: LoadCost = JSON.parse(stdout)
    say(
      `${way} (${streams} streams): ${seconds.toFixed(1)} s, CPU of etcd ${etcdSeconds.toFixed(1)} s, ` +
        `of tidings ${cpuSeconds.toFixed(1)} s, memory at most ${mostMib.toFixed(0)} MiB`,
    )
  }
}

async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')'))
    .split(' ')
    .slice(12, 14)
    .map(Number)
  return (user + system) / ticksPerSecond
}

async function load(): Promise<void> {
  const began = performance.now()
  let next = 0
  const writer = async () => {
    while (next < count) {
      const { key, body } = benchEvent(next++)
      await storage.create(key, body)
    }
  }
  await Promise.all(Array.from({ length: writersAtOnce }, writer))
  const seconds = (performance.now() - began) / 1000
  say(
    `loaded ${count} events of ${benchEvent(0).body.length} bytes in ${seconds.toFixed(1)} s, ` +
      `${Math.round(count / seconds)}/s`,
  )
}

/** Orders of the measured process: changes that another client makes. */
async function carryOut(order: Order): Promise<Done> {
  if (order.type === 'update') {
    const paceMs = 1000 / order.perSecond
    const began = performance.now()
    for (let made = 0; made < order.changes; made++) {
      const { key, body } = benchEvent(Math.floor((made * 7919) % count))
      storage.update(key, () => body).catch(() => {})
      const aheadMs = began + made * paceMs - performance.now()
      if (aheadMs > 0) await sleep(aheadMs)
    }
  } else {
    const doomed = Array.from({ length: order.changes }, (_, n) => benchEvent(n * 3).key)
    for (let at = 0; at < doomed.length; at += writersAtOnce) {
      await Promise.all(doomed.slice(at, at + writersAtOnce).map((key) => storage.delete(key)))
    }
  }
  const version = await storage.currentVersion({ signal: new AbortController().signal })
  return { type: 'done', version }
}

function closing<T extends { close(): void }>(value: T): Disposable & { readonly value: T } {
  return { value, [Symbol.dispose]: () => value.close() }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
