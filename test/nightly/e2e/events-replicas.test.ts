import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EventClient } from '../../support/event-client.ts'
import { inParallel, isFull, percentile } from '../../support/load.ts'
import { Replicas } from '../../support/replicas.ts'
import { added, type Change, sequenceFaults, WatchLog } from '../../support/watch-sequence.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const CREATES = isFull ? 10_000 : 2000
const WIDTH = 32
/** Keeps an unfiltered list short. */
const PER_NAMESPACE = 50

describe('two replicas on one etcd', () => {
  test(`a replica shows every event that the other has acknowledged, ${CREATES} times`, async (t) => {
    await using replicas = await Replicas.start(2)
    using a = await replicas.client(0)
    using b = await replicas.client(1)
    const { metadata } = await a.list(undefined, { limit: 1 })
    const from = { resourceVersion: metadata.resourceVersion }
    using watchA = new WatchLog(await a.watch(undefined, from))
    using watchB = new WatchLog(await b.watch(undefined, from))

    const owed: Change[] = []
    const tookMs: number[] = []
    await inParallel(CREATES, WIDTH, async (index) => {
      const [writer, reader] = index % 2 === 0 ? [a, b] : [b, a]
      const name = `e-${index}`
      const namespace = `n-${Math.floor(index / PER_NAMESPACE)}`
      const created = await writer.create(
        makeEvent(namespace, name, { reason: `Reason${index % PER_NAMESPACE}` }),
      )
      owed.push(added(created))
      const askedAt = performance.now()
      await assertShown(reader, created)
      tookMs.push(performance.now() - askedAt)
    })

    owed.sort((one, other) => one.version - other.version)
    for (const watch of [watchA, watchB]) {
      await watch.until('all creates', (frames) => frames.length >= CREATES)
      assert.deepEqual(sequenceFaults(owed, watch.changes), [])
    }
    t.diagnostic(
      `${CREATES} creates, ${CREATES * 4} reads through the other replica, 0 stale; ` +
        `four reads together p50 ${percentile(tookMs, 0.5).toFixed(1)} ms, ` +
        `p99 ${percentile(tookMs, 0.99).toFixed(1)} ms`,
    )
  })
})

/** Sends all reads at the same time, after the create was acknowledged. */
async function assertShown(reader: EventClient, created: WireEvent): Promise<void> {
  const { name, namespace } = created.metadata
  const [got, byName, byReason, all] = await Promise.all([
    reader.get(namespace, name),
    reader.list(namespace, { fieldSelector: `metadata.name=${name}` }),
    reader.list(namespace, { fieldSelector: `reason=${created.reason}` }),
    reader.list(namespace),
  ])
  assert.deepEqual(got, created)
  for (const [how, list] of Object.entries({ byName, byReason, all })) {
    const found = list.items.filter((item) => item.metadata.name === name)
    assert.equal(found.length, 1, `${name} in the list ${how}`)
    assert.equal(found[0]?.metadata.resourceVersion, created.metadata.resourceVersion)
    assert.ok(Number(list.metadata.resourceVersion) >= Number(created.metadata.resourceVersion))
  }
  assert.equal(byName.items.length, 1)
}
