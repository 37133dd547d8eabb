import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PatchType } from '../../support/event-client.ts'
import { Replicas } from '../../support/replicas.ts'
import { changeOf, sequenceFaults, WatchLog } from '../../support/watch-sequence.ts'
import { makeEvent } from '../../support/wire-event.ts'

const PATCHES = 200
const NAMESPACE = 'patched'

/** Each adds its own label, and names no version. */
const KINDS: Readonly<Record<PatchType, (label: string) => unknown>> = {
  'merge-patch': (label) => ({ metadata: { labels: { [label]: 'set' } } }),
  'strategic-merge-patch': (label) => ({ metadata: { labels: { [label]: 'set' } } }),
  'json-patch': (label) => [{ op: 'add', path: `/metadata/labels/${label}`, value: 'set' }],
}

describe('patches of one event', () => {
  for (const [type, patchOf] of Object.entries(KINDS) as [
    PatchType,
    (label: string) => unknown,
  ][]) {
    test(`${PATCHES} concurrent patches of one event through two replicas are all applied (${type})`, async (t) => {
      await using replicas = await Replicas.start(2)
      using a = await replicas.client(0)
      using b = await replicas.client(1)
      const labels = Array.from({ length: PATCHES }, (_, index) => `l${index}`)
      const created = await a.create(makeEvent(NAMESPACE, 'target', { labels: { first: 'set' } }))
      const { resourceVersion = '' } = created.metadata
      using watch = new WatchLog(await b.watch(NAMESPACE, { resourceVersion }))

      const startedAt = performance.now()
      const answers = await Promise.all(
        labels.map((label, index) =>
          (index % 2 === 0 ? a : b).patch(NAMESPACE, 'target', { type, patch: patchOf(label) }),
        ),
      )
      const tookMs = performance.now() - startedAt

      for (const [index, answer] of answers.entries()) {
        assert.equal(answer.metadata.labels?.[`l${index}`], 'set', 'the response has its own label')
      }
      const owed = answers
        .map((object) => changeOf({ type: 'MODIFIED', object }))
        .sort((one, other) => one.version - other.version)
      assert.equal(new Set(owed.map(({ version }) => version)).size, PATCHES)
      await watch.until('all patches', (frames) => frames.length >= PATCHES)
      assert.deepEqual(sequenceFaults(owed, watch.changes), [])
      const sizes = watch.frames.map(
        ({ object }) => Object.keys(object.metadata.labels ?? {}).length,
      )
      assert.deepEqual(
        sizes,
        labels.map((_, index) => index + 2),
        'one more label each time',
      )
      for (const reader of [a, b]) {
        const { metadata } = await reader.get(NAMESPACE, 'target')
        assert.deepEqual(Object.keys(metadata.labels ?? {}).sort(), ['first', ...labels].sort())
      }
      t.diagnostic(`${PATCHES} patches in ${tookMs.toFixed(0)} ms`)
    })
  }
})
