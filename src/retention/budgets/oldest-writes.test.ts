import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventSelector, StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { OldestWrites } from './oldest-writes.ts'

const all: EventSelector = { matches: () => true }
const none: EventSelector = { matches: () => false }
const scope = { cluster: 'c', namespace: 'a' }
const { signal } = new AbortController()

test('oldest writes: are searched for again after half a minute, since they may be gone', async () => {
  let now = 0
  let events: readonly StoredEvent[] = []
  const storage = {
    list: async (
      _: unknown,
      { selector = all }: { readonly selector?: EventSelector | undefined },
    ) => {
      const items = events.filter((event) => selector.matches(event))
      return { items, version: versionOfState(99), more: false, remaining: 0 }
    },
  }
  const named = (name: string, revision: number) =>
    new StoredBody({
      key: { ...scope, name },
      body: Buffer.from('{"metadata":{}}'),
      versionOffset: 13,
      version: versionOfChange(revision, 0),
      writtenAtMs: 0,
    })
  const oldest = new OldestWrites({ storage, clock: { now: () => now }, lane: aLane() }, [
    all,
    none,
  ])
  const names = async () => (await oldest.of(scope, signal)).map(({ key }) => key.name)
  events = [named('a', 5), named('b', 3), named('c', 4)]
  assert.deepEqual(await names(), ['b', 'c', 'a'])
  events = [named('a', 5), named('b', 6)]
  now = 29_000
  assert.deepEqual(await names(), ['b', 'c', 'a'])
  now = 30_000
  assert.deepEqual(await names(), ['a', 'b'])
})
