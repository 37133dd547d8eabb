/**
 * The measured process of bench/follow.bench.ts: prints the microseconds of CPU time, main thread
 * only, that one created event costs from the etcd watch into memory. The sources are imported from
 * the folder in the first argument, so that two versions can be compared.
 *
 * etcd is replaced by the bytes it would send. `own`: this replica wrote the event, else another
 * one. `alike`: all events are of one namespace and one object, as under a load test, so that every
 * index compares keys.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Event } from '../../src/api/event.ts'
import type { KeyValue, Txn, TxnOp, TxnResult, WatchBatch } from '../../src/etcd/client.ts'
import type { EventKey } from '../../src/storage/storage.ts'
import { benchEvent } from '../memory/events.ts'

const [root = '', kind = ''] = process.argv.slice(2)
const isOwn = kind.includes('own')
const isAlike = kind.includes('alike')
const before = 40_000
const measured = 40_000
const perRevision = 100

const from = (path: string) => import(join(root, 'src', path))
const { CachedStorage } = (await from(
  'cache/cached-storage.ts',
)) as typeof import('../../src/cache/cached-storage.ts')
const { EtcdStorage } = (await from(
  'storage/etcd/etcd-storage.ts',
)) as typeof import('../../src/storage/etcd/etcd-storage.ts')
const { TopSources } = (await from(
  'registry/top-sources.ts',
)) as typeof import('../../src/registry/top-sources.ts')
const { silentLog } = (await from('lib/log/log.ts')) as typeof import('../../src/lib/log/log.ts')

let revision = 1
let written: KeyValue[] = []
let deliver: (batch: WatchBatch) => void = () => {}
const client = {
  range: async () => ({ revision, kvs: [], more: false, count: 0, connection: 1 }),
  async *scan() {
    yield { revision, kvs: [], count: 0, connection: 1 }
  },
  txn: async (txn: Txn): Promise<TxnResult> => {
    revision++
    const puts = (txn.success ?? []).map((op) => (op.type === 'txn' ? op.success?.[0] : op))
    for (const put of puts) if (put !== undefined) written.push(received(put))
    const results = puts.map(() => ({ type: 'txn' as const, succeeded: true, results: [] }))
    return { revision, succeeded: true, results }
  },
  watch: () => {
    throw new Error('not used')
  },
  follow: () => ({
    connection: 1,
    verified: 1,
    verify: () => {},
    requestProgress: () => {},
    async *[Symbol.asyncIterator]() {
      for (;;) yield await new Promise<WatchBatch>((resolve) => (deliver = resolve))
    },
  }),
  connected: async () => 1,
  newestConnection: 1,
}
const options = { client, prefix: '/registry', onCorrupt: () => {} }
const inner = new EtcdStorage(options)
const writer = isOwn ? inner : new EtcdStorage(options)
const sources = new TopSources()
const cached = new CachedStorage({
  inner,
  log: silentLog,
  onWritten: (stored, atMs) => sources.changed(stored, atMs),
})
void cached.run(new AbortController().signal)
await cached.synced
await new Promise((resolve) => setTimeout(resolve, 50))
written = []

let micros = 0
for (let n = 0; n < before + measured; n += perRevision) {
  const events = Array.from({ length: perRevision }, (_, index) => made(n + index))
  await Promise.all(events.map(({ key, body, event }) => writer.create(key, body, { event })))
  const batch = delivered()
  const begun = process.threadCpuUsage()
  deliver(batch)
  do await new Promise(setImmediate)
  while (cached.count < n + perRevision)
  const { user, system } = process.threadCpuUsage(begun)
  if (n >= before) micros += user + system
}
process.stdout.write(`${micros / measured}\n`)
process.exit(0)

function delivered(): WatchBatch {
  const events = written.map((kv) => ({ type: 'put' as const, kv, prevKv: undefined }))
  written = []
  return { revision, events }
}

/** Copies, as a watch receives them. */
function received(op: TxnOp): KeyValue {
  if (op.type !== 'put') throw new Error('only creates are measured')
  return {
    key: Buffer.from(op.key),
    value: Buffer.from(op.value),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0n,
  }
}

function made(n: number): {
  readonly key: EventKey
  readonly body: Buffer
  readonly event: Event
} {
  const { key, body } = benchEvent(isAlike ? 0 : n)
  const event = JSON.parse(body.toString())
  if (!isAlike) return { key, body, event }
  const name = `payment-gateway-${randomBytes(8).toString('hex')}`
  event.metadata = { ...event.metadata, name, namespace: 'created' }
  const { cluster } = key
  return {
    key: { cluster, namespace: 'created', name },
    body: Buffer.from(JSON.stringify(event)),
    event,
  }
}
