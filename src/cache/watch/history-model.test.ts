import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allEvents } from '../../storage/event-scope.ts'
import { frameOf } from '../../storage/frames.ts'
import { beginning, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { WatchItem } from '../../storage/storage.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import { History } from './history.ts'

const encoders = Array.from({ length: 3 }, () => ({
  encode: ({ stored }: WatchItem): Buffer => Buffer.from(stored.body),
}))

const change = fc.record({
  name: fc.nat(39),
  isDelete: fc.boolean(),
  noteBytes: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 30_000, max: 60_000 }) },
  ),
})
const step = fc.oneof(
  { weight: 20, arbitrary: fc.array(change, { minLength: 1, maxLength: 8 }) },
  { weight: 1, arbitrary: fc.constant('restart' as const) },
)
const bounds = fc.record({
  changesMax: fc.integer({ min: 10, max: 200 }),
  bytesMax: fc.integer({ min: 200_000, max: 1_000_000 }),
  promptMax: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
})

test('history: returns the newest changes that happened, and stays within its bounds', () => {
  const steps = fc.array(step, { minLength: 20, maxLength: 150, size: 'max' })
  fc.assert(
    fc.property(bounds, steps, (limits, made) => {
      const history = new History(limits, beginning)
      // Nobody is far behind in this one, which has seven eighths of the bytes.
      const prompt = new History({ ...limits, bytesMax: (limits.bytesMax * 7) / 8 }, beginning)
      let happened: WatchItem[] = []
      for (const [index, one] of made.entries()) {
        const revision = index + 1
        if (one === 'restart') {
          history.restart(versionOfState(revision))
          prompt.restart(versionOfState(revision))
          happened = []
        } else {
          const items = one.map((wanted, at) => madeChange(revision, at, wanted))
          history.append(items, versionOfState(revision))
          prompt.append(items, versionOfState(revision))
          happened.push(...items)
        }
        assert.ok(history.bytes <= limits.bytesMax, `${history.bytes} of ${limits.bytesMax}`)
        assert.ok(history.head - history.tail <= limits.changesMax)
        if (index % 10 === 0) {
          check(history, happened)
          encode(history, history.prompt, history.prompt + 5)
          encode(prompt, prompt.prompt, prompt.prompt + 5)
          encode(history, history.tail, history.prompt)
        }
        assert.ok(history.tail <= prompt.tail, 'watchers far behind evict an eighth at most')
      }
      check(history, happened)
      history.restart(versionOfState(made.length))
      assert.equal(history.bytes, 0)
    }),
    { numRuns: 40 },
  )
})

function madeChange(
  revision: number,
  at: number,
  { name, isDelete, noteBytes }: { name: number; isDelete: boolean; noteBytes: number },
): WatchItem {
  const key = { cluster: 'local', namespace: `n-${name % 3}`, name: `e-${name}` }
  const version = versionOfChange(revision, at)
  const stored = madeEvent(key, version, { note: `${revision}.${at} `.padEnd(noteBytes, 'n') })
  return isDelete ? { type: 'delete', stored } : { type: 'put', stored, previous: undefined }
}

function check(history: History, happened: readonly WatchItem[]): void {
  const retained = history.head - history.tail
  const expected = retained === 0 ? [] : happened.slice(-retained)
  const until = { position: history.head, version: history.version }
  const read: WatchItem[] = []
  for (let position = history.tail; position < history.head; ) {
    const slice = history.read(position, { scope: allEvents, enough: 7, until })
    read.push(...slice.items)
    position = slice.end
  }
  assert.deepEqual(read.map(textOf), expected.map(textOf))
  const middle = expected[retained >> 1]
  if (middle !== undefined) {
    const after = history.positionAfter(middle.stored.version)
    assert.equal(after, history.tail + (retained >> 1) + 1)
  }
}

/** Frames count as well: encoding may evict. */
function encode(history: History, from: number, to: number): void {
  const until = { position: history.head, version: history.version }
  for (let position = from; position < to && position < history.head; ) {
    const { items, end } = history.read(position, { scope: allEvents, enough: 1, until })
    for (const item of items) for (const encoder of encoders) frameOf(item, encoder)
    position = Math.max(end, history.tail)
  }
}

function textOf({ type, stored: { key, version, body } }: WatchItem): string {
  return [type, key.namespace, key.name, version, `${body}`].join(' ')
}
