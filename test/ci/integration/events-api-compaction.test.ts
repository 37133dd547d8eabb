import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Chunk } from '../../../src/http/exchange.ts'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

/** So little that the cache evicts history as soon as etcd compacts it. */
const bounds = {
  historyBounds: { changesMax: 4, bytesMax: 1024 * 1024 },
  memoryBounds: { statesMax: 1, stateAgeMsMax: 0, stateBytesMax: 0 },
}

describe('the API after etcd was compacted', () => {
  let api: EventApiUnderTest
  /** The version of the first page, before the compaction. */
  let old: string
  let token: string

  withEventApi({
    options: bounds,
    begin: async (started) => {
      api = started
      for (const name of ['e1', 'e2', 'e3', 'e4', 'e5']) await create(name)
      const page = await api.call({ at: 'a', query: { limit: 2 } })
      assert.deepEqual(namesOf(page.json.items), ['e1', 'e2'])
      token = page.json.metadata.continue
      old = page.json.metadata.resourceVersion
      await api.call({ method: 'DELETE', at: 'a/e3' })
      await create('e6')
      for (let number = 0; number < 8; number++) await create(`later-${number}`)
      await api.compact()
      await create('e7')
    },
  })

  async function create(name: string): Promise<void> {
    const namespace = name.startsWith('e') ? 'a' : 'b'
    const body = makeEvent(namespace, name)
    assert.equal((await api.call({ method: 'POST', at: namespace, body })).status, 201)
  }

  test('a page of a compacted snapshot is a 410 with a token that continues the list', async () => {
    const gone = await api.call({ at: 'a', query: { limit: 2, continue: token } })
    assert.equal(gone.status, 410)
    assert.equal(gone.json.reason, 'Expired')
    assert.match(gone.json.message, /The provided continue parameter is too old/)
    assert.equal(gone.headers['retry-after'], undefined)
    const names: string[] = []
    let next = gone.json.metadata.continue
    for (let pages = 0; next !== undefined && pages < 10; pages++) {
      const page = await api.call({ at: 'a', query: { limit: 2, continue: next } })
      assert.equal(page.status, 200)
      names.push(...namesOf(page.json.items))
      next = page.json.metadata.continue
    }
    assert.deepEqual(names, ['e4', 'e5', 'e6', 'e7'])
  })

  test('the token also returns the whole rest at once', async () => {
    const gone = await api.call({ at: 'a', query: { continue: token } })
    const query = { continue: gone.json.metadata.continue }
    const rest = await api.call({ at: 'a', query })
    assert.deepEqual(namesOf(rest.json.items), ['e4', 'e5', 'e6', 'e7'])
    assert.equal(rest.json.metadata.continue, undefined)
  })

  test('a collection delete continues with such a token as well', async () => {
    const query = { continue: token, limit: 1, dryRun: 'All' }
    const gone = await api.call({ method: 'DELETE', at: 'a', query })
    assert.equal(gone.status, 410)
    const going = { ...query, continue: gone.json.metadata.continue }
    const { status, json } = await api.call({ method: 'DELETE', at: 'a', query: going })
    assert.equal(status, 200)
    assert.equal(typeof json.metadata.continue, 'string')
  })

  test('a list at exactly that version is a 410 without a token', async () => {
    const queries = [
      { resourceVersion: old, resourceVersionMatch: 'Exact' },
      { resourceVersion: old, resourceVersionMatch: 'Exact', limit: 2 },
      { resourceVersion: old, limit: 2 },
    ]
    for (const query of queries) {
      const { status, json } = await api.call({ at: 'a', query })
      assert.equal(status, 410)
      assert.equal(json.reason, 'Expired')
      assert.equal(json.metadata.continue, undefined)
    }
  })

  test('a list at a version that is not compacted is served', async () => {
    const query = { resourceVersion: old, resourceVersionMatch: 'NotOlderThan' }
    const { status, json } = await api.call({ at: 'a', query })
    assert.equal(status, 200)
    assert.equal(json.items.length, 6)
  })

  test('a long list whose snapshot is compacted while it is sent is cut off, not ended normally', async () => {
    await api.fill('long', 1_600)
    const { status, body } = await api.ask({ at: 'long' })
    assert.equal(status, 200)
    const chunks = (body as AsyncIterable<Chunk>)[Symbol.asyncIterator]()
    await chunks.next()
    await chunks.next()
    await create('later-still')
    await api.compact()
    await create('later-yet')
    await eventually('the cache has moved on', () => api.storage.stats().statesKept === 0)
    await assert.rejects(
      async () => {
        while ((await chunks.next()).done !== true);
      },
      { reason: 'Expired' },
    )
  })

  test('a watch from a compacted version begins, sends an ERROR with 410, and ends', async () => {
    for (const query of [{ resourceVersion: old }, { resourceVersion: '1' }]) {
      await using watched = await api.watch('a', query)
      assert.equal(watched.status, 200)
      await watched.ended
      const [frame, ...more] = watched.frames
      assert.deepEqual(more, [])
      assert.equal(frame?.type, 'ERROR')
      assert.equal(frame?.object.code, 410)
      assert.match(frame?.object.message ?? '', /watch is too old/)
    }
  })
})

function namesOf(items: readonly WireEvent[]): readonly string[] {
  return items.map(({ metadata }) => metadata.name)
}
