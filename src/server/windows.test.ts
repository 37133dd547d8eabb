import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aLane } from '../lib/run-queue.fixture.ts'
import { Totals } from '../retention/account/totals.ts'
import { RetentionPolicy } from '../retention/policy.ts'
import type { Version } from '../storage/resource-version.ts'
import type { StoredSize } from '../storage/stored-sizes.ts'
import { windowStatuses } from './windows.ts'

/** Known in the reverse order of their names. */
function* sizesOf(namespaces: number): Generator<StoredSize> {
  for (let at = namespaces - 1; at >= 0; at--) {
    const namespace = `ns-${String(at).padStart(5, '0')}`
    yield { cluster: 'local', namespace, events: 1, bytes: 100 }
  }
  yield { cluster: 'local', namespace: undefined, events: namespaces, bytes: namespaces * 100 }
}

const memory = {
  sizes: {
    all: () => sizesOf(10_000),
    of: (cluster: string, namespace: string | undefined) => ({
      cluster,
      namespace,
      events: 1,
      bytes: 100,
    }),
  },
  oldest: { in: async () => 0 },
}

/** The size limit of a policy file. */
const names = Array.from({ length: 600 }, (_, at) => `some-namespace-${at}`)
const retention = {
  policy: new RetentionPolicy({
    rules: Array.from({ length: 40 }, (_, at) => ({
      name: `rule-${at}`,
      selector: at % 2 === 0 ? { namespace: names, type: ['Normal'] } : { reason: names },
      lifetime: 1_000,
    })),
    lifetime: 3_600_000,
  }),
  totals: new Totals(),
}

const all = { cluster: 'local', namespace: undefined, isSelected: () => true, windowsMax: 1_000 }

test('only the first of very many windows are listed, in time slices, with short texts', async () => {
  const statuses = windowStatuses(memory, retention)
  let turns = 0
  let isListing = true
  const count = (): void => {
    turns++
    if (isListing) setImmediate(count)
  }
  setImmediate(count)
  const { windows, hidden } = await statuses.list({
    ...all,
    signal: new AbortController().signal,
    lane: aLane(),
  })
  isListing = false
  assert.ok(turns > 0, 'the event loop had no turn')
  assert.equal(windows.length, 1_000)
  assert.equal(hidden, 9_001)
  assert.deepEqual(
    windows.slice(0, 3).map(({ namespace }) => namespace),
    [undefined, 'ns-00000', 'ns-00001'],
  )
  const [cluster, first, second] = windows
  assert.equal(cluster?.lifetimes.length, 32)
  assert.equal(cluster?.hiddenRules, 9)
  assert.equal(first?.lifetimes.length, 21)
  assert.equal(first?.hiddenRules, 0)
  for (const { selects } of cluster?.lifetimes ?? []) assert.ok(selects.length <= 128, selects)
  assert.equal(first?.lifetimes[0], second?.lifetimes[0], 'a rule is described once')
})

test('a list ends with its request, even while it waits for another', async () => {
  const statuses = windowStatuses(memory, retention)
  const ending = new AbortController()
  const { signal } = ending
  const running = statuses.list({ ...all, signal, lane: aLane() })
  const waiting = statuses.list({ ...all, signal, lane: aLane() })
  ending.abort()
  await assert.rejects(running, { kind: 'timeout' })
  await assert.rejects(waiting, { kind: 'timeout' })
})

test('the archive is shown where memory is empty, and alike for all namespaces of a cluster', async () => {
  const [position, positionAtMs] = [7_999 as Version, 5]
  const oldestMsOf = (cluster: string) => (cluster === 'local' ? 86_400_000 : undefined)
  const kept = {
    sizes: {
      all: () => sizesOf(0),
      of: (cluster: string, namespace: string | undefined) => ({
        ...{ cluster, namespace, events: 0, bytes: 0 },
      }),
    },
    oldest: { in: async () => undefined },
  }
  const listOf = async (query: object, history?: Parameters<typeof windowStatuses>[2]) => {
    const asked = { ...all, ...query, signal: new AbortController().signal, lane: aLane() }
    const { windows } = await windowStatuses(kept, retention, history).list(asked)
    return windows.map(({ cluster, namespace, history: shown }) => [cluster, namespace, shown])
  }
  const windowStart = ({ namespace }: { namespace?: string | undefined }) =>
    namespace === undefined ? Number.NEGATIVE_INFINITY : 99_000_000
  const archive = () => ({ oldestMsOf, windowStart, position, positionAtMs })
  const shown = { oldestMs: 86_400_000, untilMs: undefined, position, positionAtMs }
  assert.deepEqual(await listOf({}, archive), [['local', undefined, shown]])
  assert.deepEqual(await listOf({ namespace: 'gone' }, archive), [
    ['local', 'gone', { ...shown, untilMs: 99_000_000 }],
  ])
  assert.deepEqual(await listOf({ namespace: 'gone', isSelected: () => false }, archive), [])
  assert.deepEqual(await listOf({ cluster: 'other' }, archive), [])
  assert.deepEqual(await listOf({ cluster: undefined, namespace: 'gone' }, archive), [])
  assert.deepEqual(await listOf({ namespace: 'gone' }, () => undefined), [])
  assert.deepEqual(await listOf({ namespace: 'gone' }), [])
})
