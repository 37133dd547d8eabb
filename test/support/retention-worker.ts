/**
 * One replica reduced to retention: storage and retention on an etcd, configured by its argument.
 * Reports on standard output, one line of JSON each, until when it believes to lead, and which
 * events it deleted too early.
 */
import { EtcdClient } from '../../src/etcd/client.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { DEFAULT_RULE, RetentionPolicy } from '../../src/retention/policy.ts'
import { Retention } from '../../src/retention/retention.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import type { EventStorage } from '../../src/storage/storage.ts'
import { CachedEventStorage } from './cached-event-storage.ts'

/** The configuration of a worker. */
export interface WorkerConfig {
  readonly endpoints: readonly string[]
  readonly prefix: string
  readonly replica: string
  readonly lifetimeMs: number
  readonly compactionIntervalMs: number
  /** Whether it reads from the cache, as servers do. */
  readonly cached: boolean
  /** The error of its wall clock. */
  readonly clockErrorMs: number
}

/** All times are those of the machine's monotonic clock, the same in every process. */
export type WorkerLine =
  | { readonly says: 'term'; readonly at: number; readonly until: number | undefined }
  | { readonly says: 'early'; readonly name: string; readonly byMs: number }
  | { readonly says: 'status'; readonly swept: number; readonly compactions: number }

const lookEveryMs = 5

export const machineClock = {
  now: (): number => Number(process.hrtime.bigint()) / 1e6,
}

if (import.meta.main) await work(JSON.parse(process.argv[2] ?? '{}'))

async function work(config: WorkerConfig): Promise<void> {
  const client = new EtcdClient({ endpoints: config.endpoints, defaultTimeoutMs: 5_000 })
  const wallTime = () => Date.now() + config.clockErrorMs
  const ending = new AbortController()
  let cache: CachedEventStorage | undefined
  const storage = new EtcdStorage({
    client,
    prefix: config.prefix,
    now: wallTime,
    onCorrupt: (key) => {
      throw new Error(`not an event: ${key}`)
    },
  })
  if (config.cached) cache = new CachedEventStorage({ inner: storage, log: silentLog })
  const caching = cache?.run(ending.signal)
  await cache?.synced
  const counted = watched(cache ?? storage, config.lifetimeMs)
  const retention = new Retention({
    client,
    storage: counted,
    deletes: counted,
    recall: (key) => cache?.recall(key),
    prefix: config.prefix,
    replica: config.replica,
    policy: RetentionPolicy.uniform(config.lifetimeMs),
    compactionIntervalMs: config.compactionIntervalMs,
    log: silentLog,
    clock: machineClock,
    wallTime,
  })
  process.once('SIGTERM', () => ending.abort())
  let until: number | undefined
  const look = setInterval(() => {
    const heldUntil = retention.term?.heldUntil
    if (heldUntil === until) return
    until = heldUntil
    say({ says: 'term', at: machineClock.now(), until })
  }, lookEveryMs)
  const tell = setInterval(() => {
    const { deleted, compactionCount } = retention.status
    const swept = deleted.get('expired', DEFAULT_RULE)
    say({ says: 'status', swept, compactions: compactionCount })
  }, 100)
  await retention.run(ending.signal)
  say({ says: 'term', at: machineClock.now(), until: undefined })
  clearInterval(look)
  clearInterval(tell)
  await caching
  await storage.close()
  client.close()
}

/** Times deletes by the clock that all processes of the machine share, not by the worker's own. */
function watched(storage: EventStorage, lifetimeMs: number): EventStorage {
  return {
    get: (key, options) => storage.get(key, options),
    list: (scope, options) => storage.list(scope, options),
    create: (key, body) => storage.create(key, body),
    update: (key, change) => storage.update(key, change),
    delete: async (key, guard) => {
      const begunAt = Date.now()
      const deleted = await storage.delete(key, guard)
      const byMs = deleted.writtenAtMs + lifetimeMs - begunAt
      if (byMs > 0) say({ says: 'early', name: key.name, byMs })
      return deleted
    },
    watch: (scope, options) => storage.watch(scope, options),
    currentVersion: (options) => storage.currentVersion(options),
  }
}

function say(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
