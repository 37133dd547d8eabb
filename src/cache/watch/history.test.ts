import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allEvents } from '../../storage/event-scope.ts'
import { type FrameEncoder, frameOf, framesOf, joined, SharedBatch } from '../../storage/frames.ts'
import { beginning, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { madeEvent, madePut } from '../memory/made-events.fixture.ts'
import { History } from './history.ts'
import type { HistoryBounds } from './history-bounds.ts'

const roomy: HistoryBounds = { changesMax: 100, bytesMax: 10_000_000 }
const names = (items: readonly WatchItem[]) => items.map(({ stored }) => stored.key.name)

function filled(revisions: number, bounds = roomy): History {
  const history = new History(bounds, beginning)
  for (let revision = 1; revision <= revisions; revision++) {
    const items = [madePut('a', revision, 0), madePut('b', revision, 1)]
    history.append(items, versionOfState(revision))
  }
  return history
}

function until(history: History): { readonly position: number; readonly version: never } {
  return { position: history.head, version: history.version as never }
}

function readAll(history: History, position: number, namespace?: string): readonly string[] {
  const scope = namespace === undefined ? allEvents : { cluster: 'local', namespace }
  return names(history.read(position, { scope, enough: 1_000, until: until(history) }).items)
}

test('history: a position is found for any version, also one inside a transaction', () => {
  const history = filled(3)
  const after = (revision: number, index: number) =>
    readAll(history, history.positionAfter(versionOfChange(revision, index)))
  assert.deepEqual(after(2, 0), ['e-2-1', 'e-3-0', 'e-3-1'])
  assert.deepEqual(after(2, 1), ['e-3-0', 'e-3-1'])
  assert.deepEqual(after(3, 1), [])
  assert.deepEqual(readAll(history, history.positionAfter(beginning), 'b'), [
    'e-1-1',
    'e-2-1',
    'e-3-1',
  ])
})

test('history: a read ends with a whole transaction', () => {
  const history = filled(3)
  const read = history.read(0, { scope: allEvents, enough: 3, until: until(history) })
  assert.deepEqual(names(read.items), ['e-1-0', 'e-1-1', 'e-2-0', 'e-2-1'])
  assert.deepEqual([read.end, read.version], [4, versionOfState(2)])
})

test('history: a read of large bodies ends with a whole transaction', () => {
  const history = new History(roomy, beginning)
  const note = 'n'.repeat(50_000)
  for (let revision = 1; revision <= 5; revision++) {
    const items = ['a', 'b'].map((namespace, index): WatchItem => {
      const version = versionOfChange(revision, index)
      const stored = madeEvent(
        { cluster: 'local', namespace, name: `e-${revision}-${index}` },
        version,
        { note },
      )
      return { type: 'put', stored, previous: undefined }
    })
    history.append(items, versionOfState(revision))
  }
  const options = { scope: allEvents, enough: 50, until: until(history) }
  const first = history.read(0, options)
  assert.deepEqual(names(first.items), ['e-1-0', 'e-1-1'])
  assert.equal(first.version, versionOfState(1))
  assert.deepEqual(names(history.read(first.end, options).items).slice(0, 1), ['e-2-0'])
})

test('history: the number of changes is bounded; the start is the last evicted change', () => {
  const history = filled(5, { ...roomy, changesMax: 3 })
  assert.deepEqual([history.tail, history.head], [7, 10])
  assert.equal(history.start, versionOfChange(4, 0))
  assert.deepEqual(readAll(history, history.positionAfter(history.start)), [
    'e-4-1',
    'e-5-0',
    'e-5-1',
  ])
})

test('history: the bytes are bounded, frames included', () => {
  const bytesMax = 100_000
  const history = filled(20, { changesMax: 1_000, bytesMax })
  assert.equal(history.head - history.tail, 40)
  const encoder: FrameEncoder = { encode: () => Buffer.alloc(10_000) }
  const { items } = history.read(0, { scope: allEvents, enough: 1_000, until: until(history) })
  for (const item of items) frameOf(item, encoder)
  assert.ok(history.bytes <= bytesMax, String(history.bytes))
  assert.ok(history.tail > 30, String(history.tail))
})

test('history: a restart invalidates all positions handed out before', () => {
  const history = filled(3)
  const { head } = history
  history.restart(versionOfState(9))
  assert.ok(history.tail > head)
  assert.deepEqual([history.start, history.version], [versionOfState(9), versionOfState(9)])
})

test('frames: a change is encoded once for each encoder, however many watchers read it', () => {
  const history = filled(2)
  const { items } = history.read(0, { scope: allEvents, enough: 1_000, until: until(history) })
  let made = 0
  const encoder: FrameEncoder = {
    encode: ({ stored }) => {
      made++
      return Buffer.from(stored.key.name)
    },
  }
  const batch = new SharedBatch(items, history.version)
  const [first, second] = [framesOf(batch, encoder), framesOf(batch, encoder)]
  assert.equal(first, second, 'all watchers of the batch share the same bytes')
  const other = [...framesOf({ items, version: history.version }, encoder)]
  assert.deepEqual(other, first)
  assert.equal(other.join(), 'e-1-0e-1-1e-2-0e-2-1')
  assert.equal(made, 4)
})

test('frames: a batch of a single watcher is encoded piece by piece as it is taken', () => {
  const history = filled(100)
  const { items } = history.read(0, { scope: allEvents, enough: 1_000, until: until(history) })
  let made = 0
  const encoder: FrameEncoder = {
    encode: () => {
      made++
      return Buffer.alloc(1_000)
    },
  }
  const [piece] = framesOf({ items, version: history.version }, encoder)
  assert.ok(piece && piece.length > 10_000, String(piece?.length))
  assert.ok(made < 20, `${made} of ${items.length}`)
})

test('frames: pieces fit into a TLS record, whatever the length of the frames', () => {
  const lengths = [1, 16_383, 5, 20_000, 0, 16_000, 100_000, 300, 300, 15_000]
  const frames = lengths.map((length, index) => Buffer.alloc(length, index))
  const pieces = [...joined(frames)]
  assert.deepEqual(Buffer.concat(pieces), Buffer.concat(frames))
  assert.ok(pieces.every(({ length }) => length > 0 && length < 16_384))
  assert.ok(pieces.length < 16, String(pieces.length))
})

test('frames: the frames of an evicted change are not kept', () => {
  const history = filled(3, { ...roomy, changesMax: 2 })
  const [item] = history.read(4, { scope: allEvents, enough: 1, until: until(history) }).items
  const encoder: FrameEncoder = { encode: () => Buffer.alloc(10) }
  history.append([madePut('a', 4, 0), madePut('a', 4, 1)], versionOfState(4))
  const { bytes } = history
  assert.ok(item)
  frameOf(item, encoder)
  assert.equal(history.bytes, bytes)
})

test('history: old changes are evicted, also while nothing new arrives', () => {
  let nowMs = 0
  const clock = { now: () => nowMs }
  const history = new History({ ...roomy, ageMsMax: 60_000 }, beginning, { clock })
  const tick = (revision: number, items: readonly WatchItem[]): void => {
    history.append(items, versionOfState(revision))
    nowMs += 1_000
  }
  for (let revision = 1; revision <= 30; revision++) tick(revision, [madePut('a', revision)])
  for (let second = 0; second < 31; second++) tick(30, [])
  assert.deepEqual([history.tail, history.head], [1, 30])
  for (let second = 0; second < 10; second++) tick(30, [])
  assert.deepEqual([history.tail, history.start], [11, versionOfChange(11, 0)])
  for (let second = 0; second < 60; second++) tick(30, [])
  assert.deepEqual([history.tail, history.head, history.bytes], [30, 30, 0])
  assert.equal(history.start, versionOfChange(30, 0))
  assert.equal(history.positionAfter(versionOfChange(30, 0)), 30)
  tick(31, [madePut('a', 31)])
  assert.deepEqual(readAll(history, 30), ['e-31-0'])
})

test('history: older changes are packed, and read as they were', () => {
  const [fresh, packed] = [filled(20), filled(20, { ...roomy, freshMax: 5 })]
  assert.deepEqual([packed.tail, packed.fresh, packed.head], [0, 35, 40])
  const scopes = [allEvents, { cluster: 'local', namespace: 'b' }]
  for (const scope of scopes) {
    for (let position = 0; position < 40; position += 2) {
      const options = { scope, enough: 3, until: until(fresh) }
      const [expected, read] = [fresh.read(position, options), packed.read(position, options)]
      assert.deepEqual([read.end, read.version], [expected.end, expected.version])
      assert.deepEqual(contents(read.items), contents(expected.items))
    }
  }
  for (const revision of [1, 10, 20]) {
    const version = versionOfChange(revision, 0)
    assert.equal(packed.positionAfter(version), fresh.positionAfter(version))
  }
})

test('history: an update and a delete are packed with their bodies', () => {
  const history = new History({ ...roomy, freshMax: 0 }, beginning)
  const key = { cluster: 'local', namespace: 'a', name: 'e' }
  const first = madeEvent(key, versionOfChange(1, 0), { note: 'first' })
  const second = madeEvent(key, versionOfChange(2, 0), { note: 'second' })
  const deleted = madeEvent(key, versionOfChange(3, 0), { note: 'second' })
  const items: readonly WatchItem[] = [
    { type: 'put', stored: first, previous: undefined },
    { type: 'put', stored: second, previous: first },
    { type: 'delete', stored: deleted },
  ]
  for (const [index, item] of items.entries()) history.append([item], versionOfState(index + 1))
  assert.equal(history.fresh, 3)
  const read = history.read(0, { scope: allEvents, enough: 9, until: until(history) })
  assert.deepEqual(contents(read.items), contents(items))
  const { bytes } = history
  history.restart(versionOfState(3))
  assert.equal(history.bytes, 0)
  // The chunk that was being filled is gone, too.
  history.append([{ type: 'delete', stored: deleted }], versionOfState(4))
  assert.ok(history.bytes > 200_000 && history.bytes <= bytes, String(history.bytes))
})

test('history: fresh changes take a quarter of the bytes at most', () => {
  const bytesMax = 1_000_000
  const history = new History({ changesMax: 1_000, bytesMax, freshMax: 1_000 }, beginning)
  for (let revision = 1; revision <= 400; revision++) {
    const key = { cluster: 'local', namespace: 'a', name: `e-${revision}` }
    const stored = madeEvent(key, versionOfChange(revision, 0), { note: 'n'.repeat(500) })
    history.append([{ type: 'put', stored, previous: undefined }], versionOfState(revision))
  }
  const fresh = history.head - history.fresh
  assert.ok(fresh > 100 && fresh < 170, `${fresh} are fresh`)
  assert.equal(history.tail, 0)
})

test('frames: watchers that read the same packed changes share them, within a bound', () => {
  const bytesMax = 4_000_000
  const history = new History({ changesMax: 10_000, bytesMax, freshMax: 10 }, beginning)
  for (let revision = 1; revision <= 5_000; revision++) {
    history.append([madePut('a', revision)], versionOfState(revision))
  }
  let made = 0
  const encoder: FrameEncoder = {
    encode: () => {
      made++
      return Buffer.alloc(500)
    },
  }
  const watch = (position: number): number => {
    const options = { scope: allEvents, enough: 50, until: until(history) }
    const { items, end } = history.read(position, options)
    for (const item of items) frameOf(item, encoder)
    assert.ok(history.bytes <= bytesMax, String(history.bytes))
    return end
  }
  const positions = new Array<number>(20).fill(0)
  for (let round = 0; round < 40; round++) {
    for (const [index, position] of positions.entries()) positions[index] = watch(position)
  }
  assert.deepEqual(new Set(positions), new Set([2_000]))
  assert.equal(made, 2_000, 'each change is encoded once')
})

test('history: a body in a row of memory is copied only when the row is freed', () => {
  const rows = new Map<number, StoredEvent>()
  const history = new History({ changesMax: 3_000, bytesMax: 1e8, freshMax: 0 }, beginning, {
    rows: {
      holds: (row, version) => rows.get(row)?.version === version,
      read: (row) => rows.get(row) ?? assert.fail(`no row ${row}`),
    },
  })
  const items = Array.from({ length: 1_000 }, (_, index) => {
    const version = versionOfChange(index + 1, 0)
    const key = { cluster: 'local', namespace: 'a', name: `e-${index}` }
    const stored = madeEvent(key, version, { note: `${index} `.repeat(300) })
    rows.set(index, stored)
    const item = { type: 'put', stored, previous: undefined, row: index } as const
    history.append([item], versionOfState(index + 1))
    return item
  })
  const bodies = items.reduce((sum, { stored }) => sum + stored.body.length, 0)
  const held = history.bytes
  assert.ok(held < bodies / 2, `${held} for ${bodies}`)
  for (const [row, { version }] of rows) {
    history.leaveRow(row, version)
    rows.delete(row)
  }
  assert.ok(history.bytes >= held + bodies && history.bytes < held + bodies * 1.5)
  const read: WatchItem[] = []
  for (let at = 0; at < 1_000; ) {
    const slice = history.read(at, { scope: allEvents, enough: 99, until: until(history) })
    read.push(...slice.items)
    at = slice.end
  }
  assert.deepEqual(contents(read), contents(items))
  history.restart(versionOfState(5_000))
  assert.equal(history.bytes, 0)
})

test('history: the bytes of packed changes are bounded, whole chunks included', () => {
  const bytesMax = 2 * 1024 * 1024
  const history = new History({ changesMax: 100_000, bytesMax, freshMax: 10 }, beginning)
  for (let revision = 1; revision <= 5_000; revision++) {
    const key = { cluster: 'local', namespace: 'a', name: `e-${revision}` }
    const note = 'n'.repeat(revision % 100 === 0 ? 60_000 : 1_500)
    const stored = madeEvent(key, versionOfChange(revision, 0), { note })
    history.append([{ type: 'put', stored, previous: undefined }], versionOfState(revision))
    assert.ok(history.bytes <= bytesMax, `${history.bytes} after ${revision}`)
  }
  assert.ok(history.head - history.tail > 500, `${history.head - history.tail} are left`)
})

test('history: packed changes of many namespaces pay for their scopes, until these are gone', () => {
  const bytesOf = (namespaces: number): number => {
    const bounds = { changesMax: 5_000, bytesMax: 1e8, freshMax: 0 }
    const history = new History(bounds, beginning)
    for (let revision = 1; revision <= 12_000; revision++) {
      const namespace = `ns-${String(revision % namespaces).padStart(6, '0')}`
      history.append([madePut(namespace, revision)], versionOfState(revision))
    }
    const { bytes } = history
    history.restart(beginning)
    assert.equal(history.bytes, 0)
    return bytes
  }
  assert.ok(bytesOf(6_000) > bytesOf(1) + 5_000 * 256)
})

test('history: a packed change that is read again pays for the fields of a large body', () => {
  const history = new History({ changesMax: 100, bytesMax: 1e8, freshMax: 0 }, beginning)
  const key = { cluster: 'local', namespace: 'a', name: 'e' }
  const stored = madeEvent(key, versionOfChange(1, 0), { note: 'n'.repeat(100_000) })
  history.append([{ type: 'put', stored, previous: undefined }], versionOfState(1))
  const before = history.bytes
  history.read(0, { scope: allEvents, enough: 1, until: until(history) })
  assert.ok(history.bytes - before >= 300_000, String(history.bytes - before))
})

/** What a reader sees of changes. */
function contents(items: readonly WatchItem[]): readonly unknown[] {
  const state = ({ key, body, version, versionOffset, writtenAtMs, fields }: StoredEvent) => ({
    ...{ key, body: body.toString(), version, versionOffset, writtenAtMs, fields },
  })
  return items.map((item) => ({
    type: item.type,
    stored: state(item.stored),
    previous: item.type === 'put' && item.previous && state(item.previous),
  }))
}
