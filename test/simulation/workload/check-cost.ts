/**
 * Measures what the checks cost by themselves: `node test/simulation/workload/check-cost.ts`. Replays
 * commits and what clients would be told about them, without production code.
 */
import process from 'node:process'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import { FakeWorld, facetOf, stored, value } from '../../ci/simulation/invariants-world.fixture.ts'
import type { Operation } from '../invariants/operations.ts'
import { stateVersion, versionOf } from '../invariants/stored-text.ts'
import { storedBody } from './bodies.ts'

const paths: readonly string[] = Array.from({ length: 500 }, (_, index) => `a/key-${index}`)
const rounds = 40
const spent = new Map<string, { us: number; count: number }>()

function measure(name: string, count: number, work: () => void): void {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  const entry = spent.get(name) ?? { us: 0, count: 0 }
  spent.set(name, { us: entry.us + user + system, count: entry.count + count })
}

const world = new FakeWorld()
const { checks } = world
const view = checks.view(0)
const watch = checks.beginWatch(view, {
  namespace: undefined,
  from: 1_999,
  epoch: 0,
  initializations: 1,
  memoryRevision: 1_000_000,
})
let events: StoredEvent[] = []
for (let round = 0; round < rounds; round++) {
  const begun = paths.map((path) => checks.writes.begin(view, 'update', path))
  for (const operation of begun)
    operation.body = storedBody(operation.path ?? '', operation.id, facetOf(operation.id))
  const previous = events
  events = []
  const commits = begun.map(({ path = '', id }) => {
    const revision = ++world.revision
    events.push(stored(path, id, versionOf(revision, 0)))
    const changes = [world.change('put', path, value(path, id, 0))]
    return { revision, at: world.now(), changes }
  })
  measure('commit', paths.length, () => {
    for (const commit of commits) checks.onCommit(commit)
  })
  measure('acknowledged write', paths.length, () => {
    for (const [index, operation] of begun.entries()) {
      const event = events[index]
      if (event !== undefined) checks.writes.acknowledged(operation, event)
      checks.settled(operation, undefined)
    }
  })
  const read = (notOlderThan: number | undefined): Operation =>
    checks.reads.begin(view, { kind: 'get', notOlderThan })
  for (const [name, version] of [
    ['consistent get', undefined],
    ['get of any state', 0],
  ] as const) {
    measure(name, paths.length, () => {
      for (const [index, path] of paths.entries()) {
        const operation = read(version)
        checks.reads.saw(operation, path, events[index])
        checks.settled(operation, undefined)
      }
    })
  }
  measure('watched change', paths.length, () => {
    for (const [index, event] of events.entries()) {
      const version = stateVersion(Math.floor(event.version / 1000)) as Version
      watch.saw({ items: [{ type: 'put', stored: event, previous: previous[index] }], version })
    }
  })
  const sorted = events.toSorted((one, other) => (one.key.name < other.key.name ? -1 : 1))
  const page = { after: undefined, version: stateVersion(world.revision), remaining: undefined }
  measure('list of 25 of 500', 20, () => {
    for (let index = 0; index < 20; index++) {
      const operation = checks.reads.begin(view, { kind: 'list' })
      const items = sorted.slice(0, 25)
      const first = { ...page, limit: 25, items, isCut: true, remaining: 475 }
      const chain = checks.lists.sawFirst(operation, { namespace: undefined }, first)
      if (chain !== undefined) checks.lists.endChain(chain)
    }
  })
  measure('second of simulated time', 10, () => world.pass(10_000))
}
for (const violation of world.violations) process.stdout.write(`${JSON.stringify(violation)}\n`)
for (const [name, { us, count }] of spent) {
  process.stdout.write(`${(us / count).toFixed(2).padStart(8)} microseconds per ${name}\n`)
}
