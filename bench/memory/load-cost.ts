/**
 * Loads all events of an etcd into memory once and prints what that took, for bench/memory.bench.ts:
 * as JSON, seconds elapsed, CPU seconds of this process, and its highest memory in MiB.
 */
import { CachedStorage } from '../../src/cache/cached-storage.ts'
import { EtcdClient } from '../../src/etcd/client.ts'
import { rangeStreamMethod } from '../../src/etcd/methods.ts'
import { Session } from '../../src/grpc/session.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'

export interface LoadCost {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly mostMib: number
  readonly streams: number
}

const [endpoint = '', way] = process.argv.slice(2)
if (way === 'ranges') {
  // etcd says that it does not have this method, as one without RangeStream does.
  const { duplex } = Session.prototype
  Session.prototype.duplex = function (this: Session, options) {
    const isStream = options.path === rangeStreamMethod.path
    return duplex.call(this, isStream ? { ...options, path: '/etcdserverpb.KV/None' } : options)
  } as typeof duplex
}
let streams = 0
const client = new EtcdClient({
  endpoints: [endpoint],
  defaultTimeoutMs: 30_000,
  onCall: ({ path }) => {
    if (path === rangeStreamMethod.path) streams++
  },
})
const inner = new EtcdStorage({ client, prefix: '/registry', onCorrupt: () => {} })
const storage = new CachedStorage({ inner, log: silentLog })
const end = new AbortController()
const before = process.cpuUsage()
const began = performance.now()
const running = storage.run(end.signal)
await storage.synced
const seconds = (performance.now() - began) / 1000
const { user, system } = process.cpuUsage(before)
const cost: LoadCost = {
  seconds,
  cpuSeconds: (user + system) / 1e6,
  mostMib: process.resourceUsage().maxRSS / 1024,
  streams,
}
process.stdout.write(JSON.stringify(cost))
end.abort()
await running
client.close()
