import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { PlainStorage } from '../../storage/plain-storage.fixture.ts'
import type { EventKey, ListOptions, ReadStorage } from '../../storage/storage.ts'
import type { Archive, ArchivePage } from './archive.ts'
import { TieredStorage } from './tiered-storage.ts'

const scope = { cluster: 'local', namespace: 'shop' }
const keyOf = (name: string): EventKey => ({ ...scope, name })

/** Memory with events of these names, and an archive of which every page is the same. */
async function listed(names: readonly string[], page: ArchivePage, limit: number) {
  const memory = new PlainStorage()
  for (const name of names) {
    const body = JSON.stringify({ metadata: { name, namespace: 'shop', uid: name } })
    await memory.update(keyOf(name), () => Buffer.from(body))
  }
  const archive: Archive = {
    open: async () => ({
      state: 'state',
      page: async () => page,
      groups: () => assert.fail(),
      buckets: () => assert.fail(),
    }),
    tiersOf: async () => ({ memoryFromMs: 1, splitMs: 1 }),
    completeUntil: () => 0,
  }
  const options: ListOptions = {
    limit,
    archive: {},
    selector: { matches: () => true, requires: { sinceMs: 0 } },
    signal: new AbortController().signal,
    lane: aLane(),
  }
  const tiered = new TieredStorage(memory as unknown as ReadStorage, archive)
  const { items, more, archive: part } = await tiered.list(scope, options)
  return { names: items.map(({ key }) => key.name), more, cut: part?.cut }
}

const cutAt = (name: string) => ({ after: keyOf(name), afterMs: undefined })
const cutPage = (name: string): ArchivePage => ({ items: [], more: true, cut: cutAt(name) })

test('tiers: a page ends where time ran out, also if memory has more', async () => {
  const names = ['b', 'c', 'd']
  assert.deepEqual(await listed(names, cutPage('a'), 2), {
    names: [],
    more: true,
    cut: cutAt('a'),
  })
  assert.deepEqual(await listed(names, cutPage('bb'), 2), {
    names: ['b'],
    more: true,
    cut: cutAt('bb'),
  })
  assert.deepEqual(await listed(names, cutPage('x'), 9), { names, more: true, cut: cutAt('x') })
})

test('tiers: a page that is full before time ran out has no cut', async () => {
  const names = ['b', 'c', 'd']
  assert.deepEqual(await listed(names, cutPage('x'), 2), {
    names: ['b', 'c'],
    more: true,
    cut: undefined,
  })
})
