import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import type { Attributes } from '../../gate/attributes.ts'
import { ClusterLabels, countByCluster, registerClusterEventMetrics } from './clusters.ts'

async function linesOf(registry: Registry): Promise<readonly string[]> {
  return (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
}

test('requests are counted by cluster and code, and unknown clusters share one series', async () => {
  const registry = new Registry()
  const known = new Set(['prod'])
  let passedOn = 0
  const next = { begun: () => {}, ended: () => passedOn++ }
  const observer = countByCluster(next, new ClusterLabels('local', () => known), registry)
  const ended = (cluster: string, status: number): void => {
    const attributes = { isResource: false, cluster, verb: 'get', path: '/' } as Attributes
    observer.ended(attributes, { status, bytes: 0 }, { ms: 1, isLong: false })
  }
  for (const cluster of ['local', 'local', 'prod', '*', 'new']) ended(cluster, 200)
  for (let at = 0; at < 1000; at++) ended(`unknown-${at}`, 403)
  // The client disconnected: there was no response.
  ended('local', 0)
  assert.equal(passedOn, 1006)
  const counted = (cluster: string, code: number, count: number): string =>
    `tidings_cluster_requests_total{cluster="${cluster}",code="${code}"} ${count}`
  const others = [counted('_other', 200, 1), counted('_other', 403, 1000)]
  const lasting = [counted('local', 200, 2), counted('*', 200, 1), ...others]
  assert.deepEqual(
    [...(await linesOf(registry))].sort(),
    [...lasting, counted('prod', 200, 1)].sort(),
  )
  known.delete('prod')
  known.add('new')
  ended('new', 200)
  assert.deepEqual(
    [...(await linesOf(registry))].sort(),
    [...lasting, counted('new', 200, 1)].sort(),
    'a cluster that is not known any more has no series',
  )
})

test('live events are shown for each known cluster, and together for all others', async () => {
  const registry = new Registry()
  const counts: Readonly<Record<string, number>> = { local: 3, prod: 4, secret: 5 }
  const labels = new ClusterLabels('local', () => ['prod', 'empty'])
  registerClusterEventMetrics(
    ({ cluster }) => (cluster === undefined ? 12 : (counts[cluster] ?? 0)),
    labels,
    registry,
  )
  assert.deepEqual(await linesOf(registry), [
    'tidings_cluster_events{cluster="local"} 3',
    'tidings_cluster_events{cluster="prod"} 4',
    'tidings_cluster_events{cluster="empty"} 0',
    'tidings_cluster_events{cluster="_other"} 5',
  ])
})
