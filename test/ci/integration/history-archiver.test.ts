import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EtcdClient, Txn } from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import { ArchiveState } from '../../../src/history/archive-state.ts'
import { StoreError } from '../../../src/history/store/object-store.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { RetentionPolicy } from '../../../src/retention/policy.ts'
import { Retention } from '../../../src/retention/retention.ts'
import { revisionOf } from '../../../src/storage/resource-version.ts'
import { ArchiveSite, Crash, crashPoints, prefix } from '../../support/archive-site.ts'
import { eventually } from '../../support/eventually.ts'

const { signal: never } = new AbortController()
const numbered = (count: number, start = 'e') =>
  Array.from({ length: count }, (_, index) => `${start}-${index}`)

/** Of the pointer that a commit writes. */
function sequenceIn({ success: [put] = [] }: Txn): number | undefined {
  return put?.type === 'put' ? JSON.parse(String(put.value)).sequence : undefined
}

describe('the archiver', () => {
  for (const point of crashPoints) {
    test(`loses and repeats nothing when it ends at: ${point}`, async () => {
      await using site = await ArchiveSite.start()
      await site.write(numbered(20), '2026-01-01T10:00:00.000000Z')
      {
        // The first commit is of all events; the crash is in the second one.
        const crash = new Crash(point, 2)
        await using _first = await site.archive(crash)
        for (let round = 0; !crash.hasHappened && round < 100; round++) {
          const seen = `2026-01-01T11:${String(round % 60).padStart(2, '0')}:00.000000Z`
          await site.write([...numbered(5), `new-${round}`], seen)
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
        assert.ok(crash.hasHappened)
      }
      await site.write(numbered(10, 'after'), '2026-01-02T00:00:01.000000Z')
      await using _second = await site.archive(new Crash())
      await site.archived()
      await site.check()
    })
  }

  test('goes on where it was when etcd has lost the changes in between', async () => {
    await using site = await ArchiveSite.start()
    await site.write(numbered(20), '2026-01-01T10:00:00.000000Z')
    {
      await using _first = await site.archive(new Crash())
      await site.archived()
    }
    // Occurrences after the position are known by their times.
    const seen = new Date(Date.now() + 60_000).toISOString().replace('Z', '000Z')
    await site.write([...numbered(5), ...numbered(5, 'new')], seen)
    const { version } = site.versions.get('new-4') ?? assert.fail()
    await site.client.compact(revisionOf(version))
    // The changes that the first cache remembers would be enough.
    await using _cache = await site.replaceCache()
    await using _second = await site.archive(new Crash())
    await site.archived()
    await site.check()
    const { pointer } = (await site.catalogue().readPointer(never)) ?? assert.fail()
    assert.equal(pointer.gaps.length, 1)
  })

  test('counts nothing twice when etcd applies a commit after its caller has given up', async () => {
    await using site = await ArchiveSite.start()
    await site.write(numbered(20), '2026-01-01T10:00:00.000000Z')
    const held: (() => Promise<unknown>)[] = []
    let isHeld = false
    const client: Pick<EtcdClient, 'range' | 'txn'> = {
      range: (request, options) => site.client.range(request, options),
      txn: async (txn, options) => {
        if (!isHeld && sequenceIn(txn) === 2) {
          isHeld = true
          held.push(() => site.client.txn(txn, options))
          throw new EtcdError({ kind: 'timeout', message: 'a member does not respond' })
        }
        await held.pop()?.()
        return site.client.txn(txn, options)
      },
    }
    await using _running = await site.archive(new Crash(), client)
    await site.archived()
    await site.write([...numbered(5), ...numbered(5, 'new')], '2026-01-01T11:00:00.000000Z')
    await site.archived()
    await site.write(numbered(10), '2026-01-01T12:00:00.000000Z')
    await site.archived()
    assert.ok(isHeld)
    await site.check()
  })

  test('waits for a store that fails or lies, and writes nothing twice', async () => {
    await using site = await ArchiveSite.start()
    const faults = { unavailable: 3, lies: 2 }
    const put = site.store.put.bind(site.store)
    site.store.put = async (name, content, options) => {
      if (faults.unavailable > 0 && faults.unavailable--)
        throw new StoreError('unavailable', 'down')
      if (faults.lies > 0 && faults.lies--) return
      await put(name, content, options)
    }
    await using running = await site.archive(new Crash())
    await site.write(numbered(50), '2026-01-01T10:00:00.000000Z')
    await site.archived()
    await site.check()
    assert.deepEqual(faults, { unavailable: 0, lies: 0 })
    assert.ok((running.archiver.status.failures.get('upload') ?? 0) >= 5)
  })

  test('lets the sweeper delete only what is archived', async () => {
    await using site = await ArchiveSite.start()
    const catalogue = site.catalogue()
    const ending = new AbortController()
    const retention = new Retention({
      client: site.client,
      storage: site.cached,
      deletes: site.cached,
      recall: (key) => site.cached.recall(key),
      prefix,
      replica: 'host/1',
      policy: RetentionPolicy.uniform(1_000),
      archive: new ArchiveState({ catalogue, name: 'test', hasRoom: () => true }),
      compactionIntervalMs: 0,
      log: silentLog,
    })
    const running = Promise.all([retention.run(ending.signal), catalogue.run(ending.signal)])
    try {
      await site.write(numbered(20), '2026-01-01T10:00:00.000000Z')
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      assert.equal(site.cached.count, 20)
      assert.equal(retention.status.sweepLagMs, 0)
      await using _archiver = await site.archive(new Crash())
      await eventually('all have expired', () => site.cached.count === 0, 20_000)
      await site.check()
    } finally {
      ending.abort()
      await running
    }
  })
})
