import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type {
  EventKey,
  EventRun,
  EventScope,
  ListPart,
  StoredEvent,
} from '../../storage/storage.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import {
  defaultMemoryBounds,
  EventMemory,
  type MemoryBounds,
  type State,
} from '../memory/memory.ts'
import { readPage } from './page.ts'
import { readRuns } from './runs.ts'

const { signal } = new AbortController()
const everything: EventScope = { cluster: undefined, namespace: undefined }

function textOf({ key, version, body }: StoredEvent): string {
  return `${key.namespace}/${key.name}@${version} ${body}\n`
}

function keyOf(n: number): EventKey {
  return { cluster: 'local', namespace: `n-${n % 3}`, name: `e-${n}` }
}

/** A reader that caches the text of each run when it first sees it. */
class Reader {
  readonly kept = new Map<EventRun, Buffer>()
  known = 0

  /** All events of a scope at a version, in pages of several runs. */
  list(memory: EventMemory, scope: EventScope, state: State): string | undefined {
    const texts: string[] = []
    let after: EventKey | undefined
    for (let more = true; more; ) {
      const page = readRuns(memory, scope, {
        at: state.version,
        after,
        limit: 150,
        recall: (run) => this.kept.get(run),
      })
      if (page === undefined) return undefined
      for (const part of page.parts) texts.push(this.#text(part))
      after = page.last
      more = page.more
    }
    return texts.join('')
  }

  #text(part: ListPart): string {
    if (part.known !== undefined) {
      this.known++
      return part.known.toString()
    }
    assert.equal(part.count, part.events.length)
    const text = part.events.map(textOf).join('')
    if (part.run !== undefined) this.kept.set(part.run, Buffer.from(text))
    return text
  }
}

/** A memory that gets one change per revision. */
class Written {
  readonly memory: EventMemory
  #revision = 1

  constructor(bounds: MemoryBounds = defaultMemoryBounds) {
    this.memory = new EventMemory(bounds, { now: () => 0 })
  }

  put(key: EventKey): void {
    const note = `written at ${this.#revision}`
    this.memory.put(madeEvent(key, versionOfChange(this.#revision, 0), { note }))
    this.memory.reach(versionOfState(this.#revision++))
  }

  remove(key: EventKey): void {
    this.memory.delete(key, versionOfChange(this.#revision, 0))
    this.memory.reach(versionOfState(this.#revision++))
  }
}

async function pageOf(memory: EventMemory, scope: EventScope, state: State): Promise<string> {
  const page = await readPage(memory, state, { scope, limit: 10_000, signal, lane: aLane() })
  return page.items.map(textOf).join('')
}

const steps = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ put: fc.nat(900) }) },
    { weight: 8, arbitrary: fc.record({ remove: fc.nat(900) }) },
    { weight: 3, arbitrary: fc.record({ list: fc.constantFrom(undefined, 'n-0', 'n-1', 'n-2') }) },
  ),
  { minLength: 60, maxLength: 200, size: 'max' },
)

test('runs: a list built from cached runs equals a plain list, whatever was written in between', async () => {
  let known = 0
  await fc.assert(
    fc.asyncProperty(steps, async (made) => {
      const written = new Written({ ...defaultMemoryBounds, statesMax: 3 })
      const { memory } = written
      const reader = new Reader()
      for (let n = 0; n < 900; n += 2) written.put(keyOf(n))
      let earlier = { state: kept(memory), list: await pageOf(memory, everything, memory.peek()) }
      for (const step of made) {
        if ('put' in step) written.put(keyOf(step.put))
        else if ('remove' in step) written.remove(keyOf(step.remove))
        else {
          const scope = { cluster: 'local', namespace: step.list }
          const state = kept(memory)
          const expected = await pageOf(memory, scope, state)
          assert.equal(reader.list(memory, scope, state), expected)
          // A reader of an earlier state finds that state, or nothing.
          const { list } = earlier
          assert.equal(reader.list(memory, everything, earlier.state) ?? list, list)
          earlier = { state, list: await pageOf(memory, everything, state) }
        }
      }
      known += reader.known
    }),
    { numRuns: 40 },
  )
  assert.ok(known > 100, `${known} parts were known`)
})

test('runs: a change replaces the run it is in and no other', () => {
  const written = new Written()
  const { memory } = written
  const key = (n: number) => ({
    cluster: 'local',
    namespace: 'a',
    name: String(n).padStart(6, '0'),
  })
  for (let n = 0; n < 2_000; n++) written.put(key(n))
  const runs = () => {
    const found: EventRun[] = []
    const at = kept(memory).version
    const recall = (run: EventRun) => {
      found.push(run)
      return undefined
    }
    readRuns(memory, everything, { at, limit: 5_000, recall })
    return found
  }
  const before = runs()
  written.put(key(700))
  written.remove(key(1_500))
  const after = new Set(runs())
  const changed = before.filter((run) => !after.has(run))
  assert.equal(changed.length, 2)
  assert.deepEqual(
    before.filter((run) => run.isPast),
    changed,
  )
})

test('runs: a state that is not kept has no runs', () => {
  const written = new Written()
  const { memory } = written
  written.put(keyOf(1))
  const options = { at: memory.version, limit: 10, recall: () => undefined }
  assert.equal(readRuns(memory, everything, options), undefined)
  memory.keep()
  assert.equal(readRuns(memory, everything, options)?.parts.length, 1)
})

function kept(memory: EventMemory): State {
  const state = memory.keep()
  assert.ok(state !== undefined)
  return state
}
