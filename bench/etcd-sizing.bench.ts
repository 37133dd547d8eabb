/**
 * The cost of events in etcd: memory of a member, for several settings of its raft log, and disk.
 * Writes events of 900 bytes through group commit, as a busy replica does.
 *
 *   npm run bench -- etcd                    123,000 events
 *   node bench/etcd-sizing.bench.ts 20000
 */
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EtcdProcess, hasOldFlags } from '../src/dev/etcd-process.ts'
import { EtcdClient } from '../src/etcd/client.ts'
import { EtcdStorage } from '../src/storage/etcd/etcd-storage.ts'
import { etcdBinary } from '../test/support/etcd.ts'
import { benchEvent } from './memory/events.ts'

const count = Number(process.argv[2] ?? 123_000)
/** Half of them make a transaction of 50 kB, like those of a busy replica. */
const writersAtOnce = 50
const MiB = 1024 ** 2

/** Values of --snapshot-count and of the catch-up entries. The first is the default of 3.5. */
const settings = [
  [100_000, 5_000],
  [1_000, 1_000],
  [1_000, 100],
  [200, 200],
] as const

say(`${count} creates of ${benchEvent(0).body.length} bytes, ${writersAtOnce} at once`)
for (const [snapshots, catchup] of settings) await measure(snapshots, catchup)

async function measure(snapshots: number, catchup: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-sizing-'))
  const prefix = (await hasOldFlags(etcdBinary)) ? '--experimental-' : '--'
  const etcd = await EtcdProcess.start({
    binary: etcdBinary,
    dataDir: folder,
    args: [
      '--unsafe-no-fsync',
      `--quota-backend-bytes=${8 * 1024 ** 3}`,
      `--snapshot-count=${snapshots}`,
      `${prefix}snapshot-catchup-entries=${catchup}`,
    ],
  })
  try {
    const transactions = await load(etcd.endpoint)
    const metrics = await (await fetch(`${etcd.endpoint}/metrics`)).text()
    const metric = (series: string): number =>
      Number(new RegExp(`^${series} (\\S+)$`, 'm').exec(metrics)?.[1])
    const status = await readFile(`/proc/${etcd.pid}/status`, 'utf8')
    const rss = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
    // Go collects garbage when the heap is twice as large as after the last collection.
    const live = metric('go_memstats_next_gc_bytes') / 2 / MiB
    const db = metric('etcd_mvcc_db_total_size_in_bytes')
    const used = metric('etcd_mvcc_db_total_size_in_use_in_bytes')
    const wal = await folderBytes(join(folder, 'member', 'wal'))
    say(
      `${snapshots}/${catchup}: ${transactions} transactions; memory ${rss.toFixed(0)} MiB, live heap ${live.toFixed(0)} MiB; ` +
        `database ${Math.round(db / count)} bytes an event (${Math.round(used / count)} in use), ` +
        `log ${Math.round(wal / MiB)} MiB`,
    )
  } finally {
    await etcd.kill()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Returns the number of transactions. */
async function load(endpoint: string): Promise<number> {
  const client = new EtcdClient({ endpoints: [endpoint], defaultTimeoutMs: 30_000 })
  let transactions = 0
  const storage = new EtcdStorage({
    client,
    prefix: '/tidings',
    onCorrupt: (key) => say(`not an event: ${key}`),
    onCommit: () => transactions++,
  })
  let next = 0
  const writer = async (): Promise<void> => {
    while (next < count) {
      const { key, body } = benchEvent(next++)
      await storage.create(key, body)
    }
  }
  await Promise.all(Array.from({ length: writersAtOnce }, writer))
  await storage.close()
  client.close()
  return transactions
}

async function folderBytes(folder: string): Promise<number> {
  const files = await readdir(folder)
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
