import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiError, type EventClient } from '../../support/event-client.ts'
import { again, inParallel, isFull } from '../../support/load.ts'
import { Replicas } from '../../support/replicas.ts'
import {
  type Change,
  replay,
  sequenceFaults,
  statesOf,
  WatchLog,
} from '../../support/watch-sequence.ts'
import { makeEvent, type WireEvent, type WireList } from '../../support/wire-event.ts'

const EVENTS = 5000
const LIMIT = 50
const WALKS = isFull ? 20 : 4
const NAMESPACE = 'paged'
/** Each uses its own names, so that it knows the result of its writes. */
const WRITERS = 4

describe('a list in pages', () => {
  test(`pages of ${LIMIT} over ${EVENTS} events show one snapshot during writes through both replicas`, async (t) => {
    await using replicas = await Replicas.start(2)
    using a = await replicas.client(0)
    using b = await replicas.client(1)
    using writerA = await replicas.client(0)
    using writerB = await replicas.client(1)
    const { metadata } = await a.list(NAMESPACE, { limit: 1 })
    const from = { resourceVersion: metadata.resourceVersion }
    using watch = new WatchLog(await b.watch(NAMESPACE, from))
    await inParallel(EVENTS, 64, async (index) => {
      await a.create(makeEvent(NAMESPACE, `base-${index}`))
    })

    const acknowledged: Acknowledged = { puts: [], deletes: 0 }
    const writers = Array.from({ length: WRITERS }, (_, writer) =>
      again((round) =>
        writeRound(writer % 2 === 0 ? writerA : writerB, `${writer}-${round}`, acknowledged),
      ),
    )
    const walks: WireList[][] = []
    for (let walk = 0; walk < WALKS; walk++) {
      const pages = await walkPages([a, b], walk)
      walks.push(pages)
      const exact = await (walk % 2 === 0 ? b : a).list(NAMESPACE, {
        resourceVersion: pages[0]?.metadata.resourceVersion ?? '',
        resourceVersionMatch: 'Exact',
      })
      assert.deepEqual(
        pages.flatMap(({ items }) => items),
        exact.items,
      )
    }
    await Promise.all(writers.map((writer) => writer.stop()))

    const last = await a.create(makeEvent(NAMESPACE, 'the-last'))
    await watch.reach(Number(last.metadata.resourceVersion))
    const { changes } = watch
    for (const pages of walks) assertSnapshot(pages, changes)
    assertAcknowledged(acknowledged, changes)
    const { items } = await b.list(NAMESPACE)
    assert.deepEqual(statesOf(items), replay(changes), 'the state after all writes')
    const pages = walks.reduce((sum, walk) => sum + walk.length, 0)
    t.diagnostic(
      `${WALKS} walks, ${pages} pages, amid ${acknowledged.puts.length + acknowledged.deletes} writes`,
    )
  })
})

interface Acknowledged {
  /** Creates and updates, from their responses. */
  readonly puts: Change[]
  deletes: number
}

/**
 * Creates, changes and deletes its own events, and deletes and changes some that existed before.
 */
async function writeRound(client: EventClient, id: string, done: Acknowledged): Promise<void> {
  const put = (type: Change['type'], { metadata }: WireEvent): void => {
    const { namespace, name, resourceVersion } = metadata
    done.puts.push({ type, key: `${namespace}/${name}`, version: Number(resourceVersion) })
  }
  const remove = async (name: string): Promise<void> => {
    try {
      await client.delete(NAMESPACE, name)
      done.deletes += 1
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    }
  }
  const created = await client.create(makeEvent(NAMESPACE, `new-${id}`))
  put('ADDED', created)
  put('ADDED', await client.create(makeEvent(NAMESPACE, `stays-${id}`)))
  const labels = { round: id }
  put('MODIFIED', await client.update({ ...created, metadata: { ...created.metadata, labels } }))
  await remove(`new-${id}`)
  // Random over the whole range, so that every page is affected.
  const index = Math.floor(Math.random() * EVENTS)
  if (index % 2 === 0) await remove(`base-${index}`)
  else {
    const patch = { metadata: { labels } }
    put('MODIFIED', await client.patch(NAMESPACE, `base-${index}`, { type: 'merge-patch', patch }))
  }
}

/** Reads page after page, alternating between the replicas. */
async function walkPages(clients: readonly EventClient[], walk: number): Promise<WireList[]> {
  const pages: WireList[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const client = clients[(walk + pages.length) % clients.length]
    assert.ok(client !== undefined)
    const page = await client.list(NAMESPACE, {
      limit: LIMIT,
      ...(token === '' ? {} : { continue: token }),
    })
    pages.push(page)
    token = page.metadata.continue
  }
  return pages
}

/** The pages must show the state of the namespace after the changes up to their version. */
function assertSnapshot(pages: readonly WireList[], changes: readonly Change[]): void {
  const versions = new Set(pages.map(({ metadata }) => metadata.resourceVersion))
  assert.equal(versions.size, 1, `versions ${[...versions]}`)
  const version = Number(pages[0]?.metadata.resourceVersion)
  const items = pages.flatMap((page) => page.items)
  const names = items.map(({ metadata }) => metadata.name)
  assert.equal(new Set(names).size, names.length, 'every event once')
  assert.deepEqual(names, names.toSorted(), 'in the order of their names')
  assert.deepEqual(
    statesOf(items),
    replay(changes.filter((change) => change.version <= version)),
    `the state at ${version}`,
  )
  let seen = 0
  for (const [index, page] of pages.entries()) {
    const isLast = index === pages.length - 1
    seen += page.items.length
    if (!isLast) assert.equal(page.items.length, LIMIT)
    assert.equal(
      page.metadata.remainingItemCount,
      isLast ? undefined : items.length - seen,
      `remainingItemCount of page ${index}`,
    )
  }
}

/**
 * Snapshots are checked against the watch, so the watch must agree with the responses to clients.
 */
function assertAcknowledged({ puts, deletes }: Acknowledged, changes: readonly Change[]): void {
  const isOfWriters = ({ type, key }: Change): boolean =>
    type !== 'DELETED' && !(type === 'ADDED' && key.startsWith(`${NAMESPACE}/base-`))
  const seen = changes.filter(isOfWriters).filter(({ key }) => key !== `${NAMESPACE}/the-last`)
  assert.deepEqual(sequenceFaults(puts, seen), [])
  assert.equal(changes.filter(({ type }) => type === 'DELETED').length, deletes)
}
