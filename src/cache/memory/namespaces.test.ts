import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { pathOf } from '../../storage/event-scope.ts'
import { type Version, versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventKey } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { madeEvent } from './made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from './memory.ts'
import type { NamespaceChange } from './namespaces.ts'

const clusters = ['a', 'a-b', '*'] as const

interface Step extends EventKey {
  readonly do: string
}

const steps = fc.array(
  fc.record({
    do: fc.constantFrom('put', 'put', 'delete', 'reload' as const),
    cluster: fc.constantFrom('a', 'a-b'),
    namespace: fc.constantFrom('n', 'n-1', 'm'),
    name: fc.constantFrom('x', 'y'),
  }),
  { minLength: 20, maxLength: 120, size: 'max' },
)

/** The namespaces of a model, by cluster; the union is `*`. */
function namespacesOf(keys: Iterable<EventKey>): Record<string, readonly string[]> {
  const all = [...keys]
  return Object.fromEntries(
    clusters.map((cluster) => {
      const own = all.filter((key) => cluster === '*' || key.cluster === cluster)
      return [cluster, [...new Set(own.map(({ namespace }) => namespace))].sort()]
    }),
  )
}

/** A memory and its model, and the namespaces that follow from the changes alone. */
class Compared {
  readonly memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  readonly model = new Map<string, EventKey>()
  readonly replayed = new Map<string, Set<string>>(clusters.map((cluster) => [cluster, new Set()]))

  change(step: Step, revision: number): void {
    const { cluster, namespace, name } = step
    const key = { cluster, namespace, name }
    const isReload = step.do === 'reload'
    if (isReload) this.memory.forgetStates()
    const isPut = isReload ? !this.model.has(pathOf(key)) : step.do === 'put'
    if (isPut) this.#put(key, revision)
    else this.#delete(key, isReload ? undefined : versionOfChange(revision, 0))
    this.memory.reach(versionOfState(revision))
    const changes = this.memory.namespaces.takeChanges()
    if (isReload) {
      assert.deepEqual(changes, [])
      for (const one of clusters) this.replayed.set(one, new Set(this.#listed(one)))
    }
    for (const change of changes) this.#replay(change, versionOfChange(revision, 0))
  }

  check(): void {
    const expected = namespacesOf(this.model.values())
    for (const one of clusters) {
      assert.deepEqual(this.#listed(one), expected[one])
      assert.deepEqual([...(this.replayed.get(one) ?? [])].sort(), expected[one])
    }
    const events = Object.groupBy(this.model.values(), ({ cluster }) => cluster)
    const counts = Object.entries(events).map(([one, keys]) => [one, keys?.length])
    assert.deepEqual(
      Object.fromEntries(this.memory.namespaces.events()),
      Object.fromEntries(counts),
    )
  }

  #listed(cluster: string): readonly string[] {
    return this.memory.namespaces.list(cluster).map(({ name }) => name)
  }

  #put(key: EventKey, revision: number): void {
    this.memory.put(madeEvent(key, versionOfChange(revision, 0)))
    this.model.set(pathOf(key), key)
  }

  /** Without a version: as a load does it. */
  #delete(key: EventKey, version: Version | undefined): void {
    this.model.delete(pathOf(key))
    if (version !== undefined) this.memory.delete(key, version)
    else this.memory.remove(this.memory.find(Buffer.from(pathOf(key))) ?? assert.fail())
  }

  #replay({ type, namespace, version }: NamespaceChange, expected: Version): void {
    assert.equal(version, expected)
    const known = this.replayed.get(namespace.cluster) ?? new Set()
    if (type === 'put') known.add(namespace.name)
    else assert.ok(known.delete(namespace.name))
  }
}

test('the list equals the namespaces of the events, and the changes lead from one list to the next', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const compared = new Compared()
      for (const [index, step] of all.entries()) {
        compared.change(step, index + 1)
        compared.check()
      }
    }),
    { numRuns: 60 },
  )
})

test('a list that a reader holds does not change', () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const put = (namespace: string, revision: number): void => {
    const key = { cluster: 'a', namespace, name: 'x' }
    memory.put(madeEvent(key, versionOfChange(revision, 0)))
  }
  put('m', 1)
  const held = memory.namespaces.list('a')
  put('l', 2)
  memory.delete({ cluster: 'a', namespace: 'm', name: 'x' }, versionOfChange(3, 0))
  assert.deepEqual(
    held.map(({ name }) => name),
    ['m'],
  )
  assert.deepEqual(
    memory.namespaces.list('a').map(({ name }) => name),
    ['l'],
  )
})

test('after a load, a namespace has the oldest version and write time of its events', () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  memory.forgetStates()
  for (const [name, revision] of [
    ['x', 5],
    ['y', 3],
    ['z', 4],
  ] as const) {
    const key = { cluster: 'a', namespace: 'n', name }
    const { body, versionOffset } = madeEvent(key, versionOfChange(revision, 0))
    const version = versionOfChange(revision, 0)
    const writtenAtMs = revision * 1000
    memory.put(new StoredBody({ key, body, versionOffset, version, writtenAtMs }))
  }
  memory.reach(versionOfState(5))
  const known = memory.namespaces.find('a', 'n')
  assert.equal(known?.version, versionOfChange(3, 0))
  assert.equal(known?.firstWrittenMs, 3_000)
})
