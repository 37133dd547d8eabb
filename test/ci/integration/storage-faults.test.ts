import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import { startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { Replica } from '../../support/storage.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'

const { signal } = new AbortController()

/** `ok`, or the kind of the error. */
function ended(write: Promise<unknown>): Promise<string> {
  return write.then(
    () => 'ok',
    (error: unknown) => {
      assert.ok(error instanceof StorageError, String(error))
      return error.kind
    },
  )
}

function create(replica: Replica, name: string, note = 'x'): Promise<string> {
  const key = eventKey('faults', name)
  return ended(replica.storage.create(key, eventBody(key, note)))
}

async function names(replica: Replica): Promise<ReadonlySet<string>> {
  const page = await replica.storage.list(
    { cluster: 'local', namespace: 'faults' },
    { lane: aLane(), limit: 100_000, signal },
  )
  return new Set(page.items.map(({ key }) => key.name))
}

describe('storage: failures of etcd', { concurrency: true }, () => {
  test('writes to an unreachable etcd fail in bounded time and are not applied, and succeed afterwards', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    await using direct = new Replica(etcd)
    await using replica = new Replica({ endpoints: [`http://${proxy.address}`] })
    assert.equal(await create(replica, 'before'), 'ok')
    proxy.set('refuse')
    // A write on the connection that is ending might have been applied, and would time out.
    await eventually('the connection ends', () =>
      replica.client.endpoints().every(({ state }) => state === 'failing'),
    )
    const begun = performance.now()
    const ends = await Promise.all(['a', 'b', 'c'].map((name) => create(replica, name)))
    const ms = performance.now() - begun
    assert.deepEqual(ends, ['unavailable', 'unavailable', 'unavailable'])
    assert.ok(ms > 3_000 && ms < 9_000, `${ms} ms`)
    // Etcd is back before the deadline of the operation, which succeeds.
    const waiting = create(replica, 'patient')
    await pause(500)
    proxy.set('pass')
    assert.equal(await waiting, 'ok')
    assert.deepEqual(await names(direct), new Set(['before', 'patient']))
  })

  test('an event that is too large is rejected for its size, and the others of its batch are not', async () => {
    await using etcd = await startEtcd()
    await using replica = new Replica(etcd)
    const huge = 'x'.repeat(2 * 1024 * 1024)
    const ends = await Promise.all([
      create(replica, 'a'),
      create(replica, 'huge', huge),
      create(replica, 'b'),
    ])
    assert.deepEqual(ends, ['ok', 'too-large', 'ok'])
  })

  test('an etcd with smaller limits gets smaller batches', async () => {
    for (const args of [['--max-request-bytes=20000'], ['--max-txn-ops=10']]) {
      await using etcd = await startEtcd({ args })
      await using replica = new Replica(etcd)
      const ends = await Promise.all(
        Array.from({ length: 100 }, (_, index) => create(replica, `e${index}`)),
      )
      assert.deepEqual(new Set(ends), new Set(['ok']), args[0])
    }
  })

  test('acknowledged writes survive a killed leader, and writes continue within 4 s', async (t) => {
    await using etcd = await startEtcdCluster(3)
    await using replica = new Replica(etcd)
    const ends = new Map<string, string>()
    let lastAt = performance.now()
    let gapMs = 0
    let isOver = false
    let number = 0
    const call = async () => {
      while (!isOver) {
        const name = `e${number++}`
        const end = await create(replica, name)
        ends.set(name, end)
        if (end !== 'ok') continue
        gapMs = Math.max(gapMs, performance.now() - lastAt)
        lastAt = performance.now()
      }
    }
    const calls = Promise.all(Array.from({ length: 16 }, call))
    await pause(1_000)
    const leader = await leaderOf(replica, etcd.endpoints)
    await etcd.member(leader).kill()
    await pause(6_000)
    isOver = true
    await calls
    const there = await names(replica)
    const lost = [...ends].filter(([name, end]) => end === 'ok' && !there.has(name))
    const wrong = [...ends].filter(([name, end]) => end === 'unavailable' && there.has(name))
    const unknown = [...ends.values()].filter((end) => end === 'timeout').length
    t.diagnostic(`${there.size} written, ${unknown} unknown, longest gap ${Math.round(gapMs)} ms`)
    assert.deepEqual([lost, wrong], [[], []])
    assert.ok(gapMs < 4_000, `nothing was written for ${gapMs} ms`)
  })
})

async function leaderOf(replica: Replica, endpoints: readonly string[]): Promise<number> {
  const members = await Promise.all(endpoints.map((endpoint) => replica.client.status(endpoint)))
  return members.findIndex(({ memberId, leader }) => memberId === leader)
}
