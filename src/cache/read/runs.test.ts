import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventKey, EventRun, EventScope, StoredEvent } from '../../storage/storage.ts'
import { madeEvent } from '../memory/made-events.fixture.ts'
import {
  defaultMemoryBounds,
  EventMemory,
  type MemoryBounds,
  type State,
} from '../memory/memory.ts'
import { readPage } from './page.ts'
import { runsOf } from './runs.ts'

const { signal } = new AbortController()
const everything: EventScope = { cluster: undefined, namespace: undefined }

function textOf({ key, version, body }: StoredEvent): string {
  return `${key.namespace}/${key.name}@${version} ${body}\n`
}

function keyOf(n: number): EventKey {
  return { cluster: 'local', namespace: `n-${n % 3}`, name: `e-${n}` }
}

/** A reader that caches the text of each run when it first reads it. */
class Reader {
  readonly #texts = new Map<EventRun, string>()
  hits = 0

  /** All events of a scope at a version, in pages of several runs; undefined without runs. */
  async list(memory: EventMemory, scope: EventScope, state: State): Promise<string | undefined> {
    const texts: string[] = []
    let after: EventKey | undefined
    for (let more = true; more; ) {
      const page = runsOf(memory, scope, { at: state.version, after, limit: 150 })
      if (page === undefined) return undefined
      for (const { run, count, last } of page.stretches) {
        const text = run && this.#texts.get(run)
        if (text !== undefined) this.hits++
        const options = { scope, after, limit: count, signal, lane: aLane() }
        const { items } = await readPage(memory, state, options)
        const read = items.map(textOf).join('')
        assert.equal(text ?? read, read)
        assert.equal(items.at(-1)?.version, last.version)
        if (run !== undefined) this.#texts.set(run, read)
        texts.push(read)
        after = last.key
      }
      more = page.more
    }
    return texts.join('')
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

test('a cached run has the events of the list, whatever was written in between', async () => {
  let hits = 0
  await fc.assert(
    fc.asyncProperty(steps, async (made) => {
      const written = new Written({ ...defaultMemoryBounds, statesMax: 3 })
      const { memory } = written
      const reader = new Reader()
      for (let n = 0; n < 900; n += 2) written.put(keyOf(n))
      let earlier = {
        state: snapshotOf(memory),
        list: await pageOf(memory, everything, memory.peek()),
      }
      for (const step of made) {
        if ('put' in step) written.put(keyOf(step.put))
        else if ('remove' in step) written.remove(keyOf(step.remove))
        else {
          const scope = { cluster: 'local', namespace: step.list }
          const state = snapshotOf(memory)
          const expected = await pageOf(memory, scope, state)
          assert.equal(await reader.list(memory, scope, state), expected)
          // A reader of an earlier state finds that state, or nothing.
          const { list } = earlier
          assert.equal((await reader.list(memory, everything, earlier.state)) ?? list, list)
          earlier = { state, list: await pageOf(memory, everything, state) }
        }
      }
      hits += reader.hits
    }),
    { numRuns: 40 },
  )
  assert.ok(hits > 100, `${hits} hits`)
})

test('a change replaces the run it is in and no other', () => {
  const written = new Written()
  const { memory } = written
  const key = (n: number) => ({
    cluster: 'local',
    namespace: 'a',
    name: String(n).padStart(6, '0'),
  })
  for (let n = 0; n < 2_000; n++) written.put(key(n))
  const runs = () => {
    const at = snapshotOf(memory).version
    const page = runsOf(memory, everything, { at, limit: 5_000 })
    return page?.stretches.map(({ run }) => run ?? assert.fail('a part of a run')) ?? []
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

test('a part of a run is not listed as a run', () => {
  const written = new Written()
  for (let n = 0; n < 30; n++) written.put(keyOf(n))
  const at = snapshotOf(written.memory).version
  const scope = { cluster: 'local', namespace: 'n-1' }
  const page = runsOf(written.memory, scope, { at, limit: 100 })
  assert.deepEqual(
    page?.stretches.map(({ run, count }) => [run, count]),
    [[undefined, 10]],
  )
})

test('a state without a snapshot has no runs', () => {
  const written = new Written()
  const { memory } = written
  written.put(keyOf(1))
  const options = { at: memory.version, limit: 10 }
  assert.equal(runsOf(memory, everything, options), undefined)
  memory.snapshot()
  assert.equal(runsOf(memory, everything, options)?.stretches.length, 1)
})

function snapshotOf(memory: EventMemory): State {
  const state = memory.snapshot()
  assert.ok(state !== undefined)
  return state
}
