/** The history with real memory, against a list of all changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allEvents } from '../../storage/event-scope.ts'
import { beginning, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { StoredBody, withVersion } from '../../storage/stored-form.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import { EventMemory } from '../memory/memory.ts'
import { History } from './history.ts'

const clock = { now: () => 0 }
const names = 40

const change = fc.record({
  name: fc.nat(names - 1),
  isDelete: fc.boolean(),
  noteBytes: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 30_000, max: 60_000 }) },
  ),
})
const step = fc.oneof(
  { weight: 20, arbitrary: fc.array(change, { minLength: 1, maxLength: 8 }) },
  { weight: 2, arbitrary: fc.constantFrom('keep', 'forget', 'reload') },
)

test('history: packed and fresh changes are those that happened, whatever became of the events', () => {
  const bounds = fc.record({
    changesMax: fc.integer({ min: 10, max: 200 }),
    bytesMax: fc.integer({ min: 700_000, max: 5_000_000 }),
    freshMax: fc.nat(30),
  })
  const steps = fc.array(step, { minLength: 20, maxLength: 150, size: 'max' })
  fc.assert(
    fc.property(bounds, steps, (limits, made) => {
      const memory = new EventMemory(
        { statesMax: 3, stateAgeMsMax: 1e9, stateBytesMax: 1e6 },
        clock,
      )
      const history = new History(limits, beginning, { clock, rows: memory.table })
      memory.table.onFree = (row, version) => history.leaveRow(row, version)
      let happened: WatchItem[] = []
      for (const [index, one] of made.entries()) {
        const revision = index + 1
        if (one === 'keep') memory.keep()
        else if (one === 'forget') memory.forgetStates()
        else if (one === 'reload') {
          memory.forgetStates()
          history.restart(versionOfState(revision))
          happened = []
        } else {
          const items = one.flatMap((wanted, at) => applied(memory, revision, at, wanted))
          history.append(items, versionOfState(revision))
          happened.push(...items)
        }
        memory.reach(versionOfState(revision))
        assert.ok(history.bytes <= limits.bytesMax, `${history.bytes} of ${limits.bytesMax}`)
        if (index % 10 === 0) check(history, happened)
      }
      check(history, happened)
      history.restart(versionOfState(made.length))
      assert.equal(history.bytes, 0)
    }),
    { numRuns: 40 },
  )
})

/** As the reflector does it. */
function applied(
  memory: EventMemory,
  revision: number,
  at: number,
  { name, isDelete, noteBytes }: { name: number; isDelete: boolean; noteBytes: number },
): readonly WatchItem[] {
  const key = { cluster: 'local', namespace: `n-${name % 3}`, name: `e-${name}` }
  const version = versionOfChange(revision, at)
  if (isDelete) {
    const last = memory.delete(key, version)
    return last === undefined ? [] : [{ type: 'delete', stored: copied(last, version) }]
  }
  const stored = madeEvent(key, version, { note: `${revision}.${at} `.padEnd(noteBytes, 'n') })
  const { row, previous } = memory.put(stored)
  const kept = withVersion(stored, version)
  return [{ type: 'put', stored: kept, previous: previous && copied(previous), row }]
}

function copied(stored: StoredEvent, version = stored.version): StoredEvent {
  const { key, versionOffset, writtenAtMs } = stored
  return new StoredBody({
    key,
    versionOffset,
    writtenAtMs,
    version,
    body: Buffer.from(stored.body),
  })
}

function check(history: History, happened: readonly WatchItem[]): void {
  const held = history.head - history.tail
  const expected = held === 0 ? [] : happened.slice(-held)
  const until = { position: history.head, version: history.version }
  const read: WatchItem[] = []
  for (let position = history.tail; position < history.head; ) {
    const slice = history.read(position, { scope: allEvents, enough: 7, until })
    read.push(...slice.items)
    position = slice.end
  }
  assert.deepEqual(read.map(textOf), expected.map(textOf))
  const middle = expected[held >> 1]
  if (middle === undefined) return
  const after = history.positionAfter(middle.stored.version)
  assert.equal(after, history.tail + (held >> 1) + 1)
}

function textOf(item: WatchItem): string {
  const previous = item.type === 'put' ? item.previous : undefined
  const states = [item.stored, ...(previous === undefined ? [] : [previous])]
  return [
    item.type,
    ...states.flatMap(({ key, version, body }) => [key.namespace, key.name, version, `${body}`]),
  ].join(' ')
}
