/**
 * The contract of EventStorage over the simulated etcd: the same tests that hold over a real one in
 * test/ci/contract. They await production code, so the world runs in between, turn by turn.
 */

import { after } from 'node:test'
import { createCluster } from '../../simulation/etcd/cluster.ts'
import { pump, reside } from '../../simulation/kernel/current.ts'
import { intercept } from '../../simulation/kernel/interception.ts'
import { SimulatedProcess } from '../../simulation/kernel/process.ts'
import { Scheduler } from '../../simulation/kernel/scheduler.ts'
import { attach } from '../../simulation/network/host.ts'
import { Network } from '../../simulation/network/network.ts'
import { Peers } from '../../simulation/network/peers.ts'
import { Random } from '../../support/random.ts'
import type { StorageUnderTest } from '../contract/storage-contract.ts'

intercept()
const { EtcdClient } = await import('../../../src/etcd/client.ts')
const { silentLog } = await import('../../../src/lib/log/log.ts')
const { EtcdStorage } = await import('../../../src/storage/etcd/etcd-storage.ts')
const { revisionOf } = await import('../../../src/storage/resource-version.ts')
const { CachedEventStorage } = await import('../../support/cached-event-storage.ts')
const { eventBody, eventKey } = await import('../../support/stored-events.ts')

const random = new Random(1)
const scheduler = new Scheduler()
after(pump(scheduler))

function startCluster(size: number): { readonly endpoints: readonly string[]; end(): void } {
  const cluster = createCluster({
    size,
    world: () => ({
      now: () => scheduler.now,
      random: () => random.next(),
      after: (ms, run) => {
        const entry = scheduler.at(scheduler.now + ms, run)
        return () => scheduler.cancel(entry)
      },
    }),
    network: new Peers(size, random.fork()),
    observer: {},
    quotaBytes: 0,
    rangeStreamShare: 0.5,
  })
  const { members } = cluster
  const network = new Network({
    scheduler,
    random: random.fork(),
    members: () => members,
    replicas: 1,
    onMessage: () => {},
  })
  const options = { name: 'test', pid: 1, scheduler, seed: 1, rate: 1, wallOffsetMs: 0 }
  const replica = new SimulatedProcess(options)
  attach(replica, { network, replica: 0 })
  reside(replica)
  const endpoints = Array.from({ length: size }, (_, index) => `http://etcd-${index}:2379`)
  return {
    endpoints,
    end: () => {
      for (const index of members.keys()) cluster.crash(index)
    },
  }
}

function open(size: number) {
  const cluster = startCluster(size)
  const client = new EtcdClient({ endpoints: cluster.endpoints, defaultTimeoutMs: 10_000 })
  const { signal } = new AbortController()
  return {
    client,
    compact: async (storage: StorageUnderTest['storage']) => {
      await client.compact(revisionOf(await storage.currentVersion({ signal })))
    },
    close: () => {
      client.close()
      cluster.end()
    },
  }
}

const onCorrupt = (key: Buffer): never => {
  throw new Error(`not an event: ${key}`)
}

export async function makeEtcdStorage(size: number): Promise<StorageUnderTest> {
  const { client, compact, close } = open(size)
  const storage = new EtcdStorage({ client, prefix: '/registry', onCorrupt })
  return {
    storage,
    forgetHistory: () => compact(storage),
    [Symbol.asyncDispose]: async () => {
      await storage.close()
      close()
    },
  }
}

export async function makeCachedStorage(changesMax: number): Promise<StorageUnderTest> {
  const { client, compact, close } = open(3)
  const inner = new EtcdStorage({
    client,
    prefix: '/registry',
    onCorrupt,
  })
  const historyBounds = { changesMax, bytesMax: 1024 * 1024 }
  const storage: InstanceType<typeof CachedEventStorage> = new CachedEventStorage({
    inner,
    log: silentLog,
    historyBounds,
  })
  const end = new AbortController()
  const running = storage.run(end.signal)
  await storage.synced
  return {
    storage,
    forgetHistory: async () => {
      await compact(storage)
      // The history in memory must be evicted as well.
      const others = Array.from({ length: changesMax }, (_, n) => eventKey('later', `e-${n}`))
      await Promise.all(others.map((key) => storage.create(key, eventBody(key, 'x'))))
      await storage.get(eventKey('later', 'e-0'), end)
    },
    [Symbol.asyncDispose]: async () => {
      end.abort()
      await running
      await inner.close()
      close()
    },
  }
}
