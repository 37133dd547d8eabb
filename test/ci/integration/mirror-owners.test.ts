/** Mirrors on a real etcd that also read the owners of pods. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KnownOwners } from '../../../src/incidents/known-owners.ts'
import { MemoryOrigin } from '../../../src/mirror/memory-origin.fixture.ts'
import { MemoryOwners } from '../../../src/mirror/memory-owners.fixture.ts'
import { fieldsIn } from '../../../src/storage/event-fields.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { MirrorReplica, mirroredCluster } from '../../support/mirror-replica.ts'

const pod = fieldsIn({ regarding: { kind: 'Pod', namespace: 'a', name: 'odd' } })

function replicaWith(endpoints: readonly string[], name: string, parts: Parts) {
  const known = new KnownOwners()
  const clusters = new Map([['c', mirroredCluster('c', { owners: parts.isWanted ?? true })]])
  const replica = new MirrorReplica(endpoints, name, {
    clusters,
    originFor: () => parts.origin,
    leaseTtlSeconds: 2,
    owners: { known, originFor: () => parts.owners },
  })
  return { replica, known }
}

interface Parts {
  readonly origin: MemoryOrigin
  readonly owners: MemoryOwners
  readonly isWanted?: boolean
}

test('the elected replica reads the owners, and the next one after it', async () => {
  await using etcd = await startEtcd()
  const parts = { origin: new MemoryOrigin(), owners: new MemoryOwners() }
  parts.owners.put('pods/a/odd', 'StatefulSet/db')
  const first = replicaWith(etcd.endpoints, 'one', parts)
  const isKnown = ({ known }: typeof first) => known.resolve('c', pod).kind === 'StatefulSet'
  await eventually('the first replica knows', () => isKnown(first), 15_000)
  const second = replicaWith(etcd.endpoints, 'two', parts)
  await using _second = second.replica
  await second.replica.cached.synced
  assert.equal(second.known.size, 0, 'only the elected replica asks')
  const followed = ({ replica }: typeof first) => [
    ...(replica.mirrors.stats().get('c')?.ownersFollowing ?? []),
  ]
  const isFollowed = () => followed(first).every(([, isFollowing]) => isFollowing)
  await eventually('the first replica follows', isFollowed, 15_000)
  assert.deepEqual(
    followed(first).map(([resource]) => resource),
    ['pods', 'replicasets', 'jobs'],
  )
  assert.deepEqual(followed(second), [])
  await first.replica[Symbol.asyncDispose]()
  await eventually('the second replica knows', () => isKnown(second), 15_000)
})

test('owners that may not be read are reported, and the events are mirrored all the same', async () => {
  await using etcd = await startEtcd()
  const parts = { origin: new MemoryOrigin(), owners: new MemoryOwners() }
  parts.owners.forbidden.add('pods').add('replicasets').add('jobs')
  const { replica } = replicaWith(etcd.endpoints, 'one', parts)
  await using _replica = replica
  const { mirrors } = replica
  const isReported = () =>
    mirrors.statuses.get('c').message ===
    'owners of pods, replicasets, jobs are unknown: the origin responded 403: pods is forbidden'
  await eventually('the status tells', isReported, 15_000)
  parts.origin.put('late')
  const isStored = () => {
    const key = { cluster: 'c', namespace: 'a', name: 'late' }
    return replica.cached.recall(key) !== undefined
  }
  await eventually('the event is stored', isStored, 15_000)
  await eventually('it follows', () => mirrors.statuses.get('c').state === 'Following', 15_000)
})

test('nothing is requested unless the clusters file asks for it', async () => {
  await using etcd = await startEtcd()
  const origin = new MemoryOrigin()
  const parts = { origin, owners: new MemoryOwners(), isWanted: false }
  await using _replica = replicaWith(etcd.endpoints, 'one', parts).replica
  await eventually('it watches', () => origin.requests.includes('watch'), 15_000)
  assert.deepEqual(parts.owners.requests, [])
})
