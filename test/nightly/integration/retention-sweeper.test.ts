import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { pause } from '../../../src/lib/abort.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { controlKey } from '../../../src/storage/etcd/keys.ts'
import type { EventKey } from '../../../src/storage/storage.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { type Belief, Replica } from '../../support/retention-replica.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const lifetimeMs = 5_000
const lateMsMax = 15_000
/** The lease, the time until etcd notices that it has expired, and the election. */
const takeoverMsMax = 5_000 + 2_000
const prefix = '/registry'

function makeStorage(client: EtcdClient): EtcdStorage {
  return new EtcdStorage({
    client,
    prefix,
    onCorrupt: (key) => assert.fail(`not an event: ${key}`),
  })
}

/** Follows every change and compares deletes with the time of the last write. */
class Observer {
  readonly early: string[] = []
  readonly living = new Map<string, number>()
  deleted = 0
  latestMs = 0
  readonly #isClients: (name: string) => boolean

  /** `isClients`: names that clients delete, for which retention is not responsible. */
  constructor(isClients: (name: string) => boolean = () => false) {
    this.#isClients = isClients
  }

  async run(storage: EtcdStorage, signal: AbortSignal): Promise<void> {
    const from = await storage.currentVersion({ signal })
    for await (const { items } of storage.watch(
      { cluster: undefined, namespace: undefined },
      { from, signal },
    )) {
      const now = Date.now()
      for (const { type, stored } of items) {
        const { name } = stored.key
        if (type === 'put') {
          this.living.set(name, stored.writtenAtMs)
          continue
        }
        this.living.delete(name)
        this.deleted++
        const ageMs = now - stored.writtenAtMs
        if (this.#isClients(name)) continue
        if (ageMs < lifetimeMs) this.early.push(`${name} at ${ageMs} ms`)
        this.latestMs = Math.max(this.latestMs, ageMs - lifetimeMs)
      }
    }
  }

  /** Events that should have been deleted by now. */
  overdue(): string[] {
    const deadline = Date.now() - lifetimeMs - lateMsMax
    return [...this.living]
      .filter(([, writtenAtMs]) => writtenAtMs < deadline)
      .map(([name]) => name)
  }
}

/**
 * Creates events, updates some of them just when they are about to expire, and some all the time.
 */
async function makeTraffic(
  storage: EtcdStorage,
  signal: AbortSignal,
): Promise<{ updated: number }> {
  const counts = { updated: 0 }
  const touch = async (key: EventKey) => {
    try {
      await storage.update(key, (current) => current && eventBody(key, `at ${Date.now()}`))
      counts.updated++
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== 'missing') throw error
    }
  }
  const hot = Array.from({ length: 20 }, (_, at) => eventKey('hot', `hot-${at}`))
  await Promise.all(hot.map((key) => storage.create(key, eventBody(key, 'hot'))))
  const busy: Promise<void>[] = []
  for (let round = 0; !signal.aborted; round++) {
    const keys = Array.from({ length: 10 }, (_, at) => eventKey('cold', `cold-${round}-${at}`))
    await Promise.all(keys.map((key) => storage.create(key, eventBody(key, 'cold'))))
    const [first] = keys
    if (first !== undefined) {
      // The update moves from just before the expiry to just after it over the rounds.
      const afterMs = lifetimeMs - 300 + ((round * 137) % 1_500)
      busy.push(pause(afterMs).then(() => touch(first)))
    }
    if (round % 10 === 0) await Promise.all(hot.map(touch))
    await pause(200, signal)
  }
  await Promise.all(busy)
  return counts
}

function assertApart(beliefs: readonly Belief[]): void {
  const sorted = beliefs.toSorted((a, b) => a.from - b.from)
  for (const [at, belief] of sorted.entries()) {
    const next = sorted[at + 1]
    if (next !== undefined) {
      assert.ok(belief.to <= next.from, `two leaders: ${JSON.stringify([belief, next])}`)
    }
  }
}

/** The longest time from the end of one leader's term to the beginning of the next. */
function longestGapMs(beliefs: readonly Belief[]): number {
  const sorted = beliefs.toSorted((a, b) => a.from - b.from)
  return Math.max(...sorted.slice(1).map((belief, at) => belief.from - (sorted[at]?.to ?? 0)))
}

test('retention: expiry is exact while the sweeping replica is killed and paused again and again', async (context) => {
  await using etcd = await startEtcd()
  const client = new EtcdClient({ ...etcd, defaultTimeoutMs: 5_000 })
  const storage = makeStorage(client)
  const ending = new AbortController()
  const observer = new Observer()
  const observing = observer.run(storage, ending.signal)
  const replicas: Replica[] = []
  const started = () => {
    const replica = new Replica({
      endpoints: etcd.endpoints,
      prefix,
      replica: `replica-${replicas.length}`,
      lifetimeMs,
      compactionIntervalMs: 0,
      cached: replicas.length % 2 === 0,
      clockErrorMs: 0,
    })
    replicas.push(replica)
    return replica
  }
  try {
    for (let count = 0; count < 3; count++) started()
    const stopTraffic = new AbortController()
    const traffic = makeTraffic(storage, stopTraffic.signal)
    const overdue = new Set<string>()
    const faults = ['kill', 'pause', 'kill', 'kill', 'pause']
    for (const fault of faults) {
      const leader = () => replicas.find((replica) => replica.isLeader && !replica.isPaused)
      await eventually('a replica leads', () => leader() !== undefined, 20_000)
      // Just long enough to have begun.
      await pause(700)
      const victim = leader()
      if (fault === 'kill') {
        await victim?.kill()
        started()
      } else {
        victim?.pause()
        await eventually('another replica leads', () => leader() !== undefined, 20_000)
        await pause(500)
        victim?.resume()
      }
      for (const name of observer.overdue()) overdue.add(name)
    }
    stopTraffic.abort()
    const { updated } = await traffic
    await eventually(
      'everything is gone',
      () => {
        for (const name of observer.overdue()) overdue.add(name)
        return observer.living.size === 0
      },
      lifetimeMs + lateMsMax,
    )
    const beliefs = structuredClone(replicas.flatMap((replica) => replica.beliefs))
    const codes = await Promise.all(
      replicas.filter((replica) => replica.isRunning).map((replica) => replica.stop()),
    )
    context.diagnostic(
      `${observer.deleted} deleted, ${updated} updates, ${beliefs.length} terms, ` +
        `at most ${Math.round(observer.latestMs)} ms late, ` +
        `at most ${Math.round(longestGapMs(beliefs))} ms without a leader`,
    )
    assert.deepEqual([observer.early, replicas.flatMap((replica) => replica.early)], [[], []])
    assert.deepEqual([...overdue], [])
    assert.ok(observer.deleted > 500 && updated > 100, 'too little was written or deleted')
    assert.ok(beliefs.length > faults.length, 'a fault had no leader to hit')
    assertApart(beliefs)
    assert.ok(longestGapMs(beliefs) < takeoverMsMax, `${longestGapMs(beliefs)} ms`)
    assert.deepEqual(new Set(codes), new Set([0]))
    assert.equal((await client.range({ key: Buffer.from(controlKey(prefix, 'sweeper')) })).count, 0)
  } finally {
    await Promise.all(replicas.map((replica) => replica.kill()))
    ending.abort()
    await observing
    await storage.close()
    client.close()
  }
})
