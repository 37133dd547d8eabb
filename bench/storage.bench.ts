/**
 * How many events a second one replica can create, against the throughput of etcd itself:
 *   node bench/storage.bench.ts [seconds per row, default 5] [callers, default 512]
 *
 * Everything runs on this machine and against one etcd, one after another: creates with group
 * commit, creates without it, and h2load sending bare Put calls of the same size straight to etcd.
 * Needs h2load (of nghttp2).
 */
import { EtcdClient } from '../src/etcd/client.ts'
import { EtcdStorage } from '../src/storage/etcd/etcd-storage.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { eventBody, eventKey } from '../test/support/stored-events.ts'
import { barePutRate } from './support/bare-etcd.ts'

/** Measurements of one way to create events, over all rounds. */
class Row {
  readonly latencies: number[] = []
  seconds = 0
  txns = 0
  operations = 0

  perSecond(): number {
    return this.latencies.length / this.seconds
  }

  operationsPerTxn(): string {
    return (this.operations / this.txns).toFixed(0)
  }

  describe(): string {
    const sorted = this.latencies.sort((a, b) => a - b)
    const share = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(1)
    return `${rate(this.perSecond())}  p50 ${share(0.5)} ms  p99 ${share(0.99)} ms`
  }
}

const seconds = Number(process.argv[2] ?? 5)
const callers = Number(process.argv[3] ?? 512)
const warmUpSeconds = 2
const note = 'x'.repeat(350)
/** The length of the header line of a stored value. */
const headerBytes = 27
const bodyBytes = eventBody(eventKey('bench', 'size'), note).length

// etcd has fsync on, as operators run it, and a sufficient quota.
await using etcd = await startEtcd({
  args: ['--unsafe-no-fsync=false', '--quota-backend-bytes=8589934592'],
})
const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 10_000 })

// Rounds, because etcd gets slower as it fills and the speed of the machine varies.
const rounds = 2
const grouped = new Row()
const single = new Row()
let bare = 0
for (let round = 0; round < rounds; round++) {
  await creates(grouped, { prefix: `/grouped-${round}`, groupCommit: true })
  await creates(single, { prefix: `/single-${round}`, groupCommit: false })
  bare += (await barePutRate(etcd.endpoints[0] ?? '', seconds, bodyBytes + headerBytes)) / rounds
}
client.close()

print(`events of ${bodyBytes} bytes, ${callers} callers, one etcd with fsync`)
print(`create, group commit    ${grouped.describe()}  ${grouped.operationsPerTxn()} a transaction`)
print(`create, one by one      ${single.describe()}`)
print(`bare Put (h2load)       ${rate(bare)}`)
print(`group commit is ${(grouped.perSecond() / single.perSecond()).toFixed(1)} times one by one`)
print(`group commit is ${(grouped.perSecond() / bare).toFixed(2)} of the bare engine`)

async function creates(
  row: Row,
  options: { readonly prefix: string; readonly groupCommit: boolean },
): Promise<void> {
  let isMeasuring = false
  let isOver = false
  const storage = new EtcdStorage({
    client,
    ...options,
    onCorrupt: () => {},
    onCommit: (operations) => {
      if (!isMeasuring) return
      row.txns++
      row.operations += operations
    },
  })
  let number = 0
  const call = async () => {
    while (!isOver) {
      const key = eventKey(`ns-${number % 100}`, `pod-${number++}.17f3a6b2c4d5e6f7`)
      const begun = performance.now()
      await storage.create(key, eventBody(key, note))
      if (isMeasuring) row.latencies.push(performance.now() - begun)
    }
  }
  const calling = Promise.all(Array.from({ length: callers }, call))
  await wait(warmUpSeconds)
  isMeasuring = true
  const begun = performance.now()
  await wait(seconds)
  isMeasuring = false
  row.seconds += (performance.now() - begun) / 1000
  isOver = true
  await calling
  await storage.close()
}

function rate(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString('en').padStart(7)}/s`
}

function wait(forSeconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forSeconds * 1000))
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
