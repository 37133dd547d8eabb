import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allEvents } from '../../storage/event-scope.ts'
import { type FrameEncoder, frameOf, framesOf, joined, SharedBatch } from '../../storage/frames.ts'
import { beginning, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { WatchItem } from '../../storage/storage.ts'
import { madeEvent, madePut } from '../memory/made-events.fixture.ts'
import { History, type HistoryBounds } from './history.ts'

const ample: HistoryBounds = { changesMax: 100, bytesMax: 10_000_000 }
const names = (items: readonly WatchItem[]) => items.map(({ stored }) => stored.key.name)

function filled(revisions: number, bounds = ample): History {
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

test('history: finds a position for any version, even inside a transaction', () => {
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
  const history = new History(ample, beginning)
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

test('history: bounds the number of changes, and starts after the last evicted one', () => {
  const history = filled(5, { ...ample, changesMax: 3 })
  assert.deepEqual([history.tail, history.head], [7, 10])
  assert.equal(history.start, versionOfChange(4, 0))
  assert.deepEqual(readAll(history, history.positionAfter(history.start)), [
    'e-4-1',
    'e-5-0',
    'e-5-1',
  ])
})

test('history: bounds the bytes, frames included', () => {
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

test('frames: the frames of an evicted change are not cached', () => {
  const history = filled(3, { ...ample, changesMax: 2 })
  const [item] = history.read(4, { scope: allEvents, enough: 1, until: until(history) }).items
  const encoder: FrameEncoder = { encode: () => Buffer.alloc(10) }
  history.append([madePut('a', 4, 0), madePut('a', 4, 1)], versionOfState(4))
  const { bytes } = history
  assert.ok(item)
  frameOf(item, encoder)
  assert.equal(history.bytes, bytes)
})

test('history: evicts old changes, even while nothing new arrives', () => {
  let nowMs = 0
  const clock = { now: () => nowMs }
  const history = new History({ ...ample, ageMsMax: 60_000 }, beginning, clock)
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

test('history: only the newest changes are read at once', () => {
  const history = filled(20, { ...ample, promptMax: 5 })
  assert.deepEqual([history.tail, history.prompt, history.head], [0, 35, 40])
  assert.equal(filled(20).prompt, 0)
  assert.equal(filled(1, { ...ample, promptMax: 5 }).prompt, 0)
})

test('history: a large body is charged for the fields that selectors parse from it', () => {
  const history = new History({ changesMax: 100, bytesMax: 1e8 }, beginning)
  const key = { cluster: 'local', namespace: 'a', name: 'e' }
  const stored = madeEvent(key, versionOfChange(1, 0), { note: 'n'.repeat(100_000) })
  history.append([{ type: 'put', stored, previous: undefined }], versionOfState(1))
  assert.ok(history.bytes >= 300_000, String(history.bytes))
})

test('frames: watchers that are far behind together share them, within a bound', () => {
  const bytesMax = 8_000_000
  const history = new History({ changesMax: 10_000, bytesMax, promptMax: 10 }, beginning)
  for (let revision = 1; revision <= 4_000; revision++) {
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

test('frames: the frames of changes that few watchers still read are dropped', () => {
  const history = filled(5, { ...ample, promptMax: 4 })
  const { bytes } = history
  const encoder: FrameEncoder = { encode: () => Buffer.alloc(1_000) }
  const { items } = history.read(6, { scope: allEvents, enough: 4, until: until(history) })
  for (const item of items) frameOf(item, encoder)
  assert.equal(history.bytes, bytes + 4_000)
  const [first, second] = [madePut('a', 6, 0), madePut('b', 6, 1)]
  history.append([first, second], versionOfState(6))
  const added = filled(6, { ...ample, promptMax: 4 }).bytes - bytes
  assert.equal(history.bytes, bytes + added + 2_000)
})

test('frames: watchers that are far behind take no more than an eighth of the ring for theirs', () => {
  const bytesMax = 1_000_000
  const history = filled(1_000, { changesMax: 10_000, bytesMax, promptMax: 10 })
  const retained = history.head - history.tail
  for (let count = 0; count < 8; count++) {
    const encoder: FrameEncoder = { encode: () => Buffer.alloc(1_000) }
    const behind = { ...until(history), position: history.prompt }
    const options = { scope: allEvents, enough: 50, until: behind }
    for (let position = history.tail; position < history.prompt; ) {
      const { items, end } = history.read(position, options)
      for (const item of items) frameOf(item, encoder)
      position = Math.max(end, history.tail)
    }
  }
  assert.ok(history.bytes <= bytesMax, String(history.bytes))
  const left = history.head - history.tail
  assert.ok(left >= 0.87 * retained, `${left} of ${retained} changes are left`)
})
