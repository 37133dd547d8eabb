/** One mirror after the other on a real etcd: what a restart, a restore and a new file must keep. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event } from '../../../src/api/event.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { MemoryOrigin } from '../../../src/mirror/memory-origin.fixture.ts'
import { OriginError } from '../../../src/mirror/origin.ts'
import { mirrorKey } from '../../../src/storage/etcd/keys.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { MirrorReplica, mirroredCluster, mirrorPrefix } from '../../support/mirror-replica.ts'

const { signal } = new AbortController()
const leaseTtlSeconds = 2

async function notesOf(replica: MirrorReplica, cluster: string): Promise<Record<string, string>> {
  const scope = { cluster, namespace: undefined }
  const { items } = await replica.cached.list(scope, { lane: aLane(), limit: 10_000, signal })
  return Object.fromEntries(
    items.map(({ key, body }) => {
      const { note = '', metadata } = JSON.parse(body.toString()) as Event
      const epoch = metadata.annotations?.['tidings.dev/origin-epoch'] ?? '0'
      return [key.name, `${note} in epoch ${epoch}`]
    }),
  )
}

function expectedNotes(origin: MemoryOrigin, epoch: number): Record<string, string> {
  return Object.fromEntries(
    [...origin.events.values()].map(({ event }) => {
      return [event.metadata.name, `${event.note} in epoch ${epoch}`]
    }),
  )
}

async function untilMirrored(replica: MirrorReplica, origin: MemoryOrigin, epoch = 0) {
  const wanted = JSON.stringify(Object.entries(expectedNotes(origin, epoch)).sort())
  await eventually(
    'everything is mirrored',
    async () => JSON.stringify(Object.entries(await notesOf(replica, 'c')).sort()) === wanted,
    15_000,
  )
}

describe('mirrors', () => {
  test('a mirror that is started again resumes from its record, without a list', async () => {
    await using etcd = await startEtcd()
    const origin = new MemoryOrigin()
    for (let index = 0; index < 700; index++) origin.put(`e${index}`)
    const clusters = new Map([['c', mirroredCluster('c')]])
    const options = { clusters, originFor: () => origin, leaseTtlSeconds }
    {
      await using first = new MirrorReplica(etcd.endpoints, 'first', options)
      await untilMirrored(first, origin)
      const { statuses } = first.mirrors
      const isSaved = () => statuses.get('c').state === 'Following'
      await eventually('the position is saved', isSaved, 15_000)
    }
    assert.deepEqual(origin.requests.slice(0, 2), ['list 500', 'list 500'])
    origin.put('while-away')
    origin.requests.length = 0
    await using second = new MirrorReplica(etcd.endpoints, 'second', options)
    await untilMirrored(second, origin)
    assert.deepEqual(origin.requests, ['list 1', 'watch'])
    const { results } = second.mirrors.stats().get('c')?.counters ?? assert.fail()
    // The event is seen as soon as etcd has it, and counted when etcd has responded.
    await eventually('the write is counted', () => results.stored === 1, 5_000)
    assert.deepEqual(results, {
      'too-large': 0,
      invalid: 0,
      unreadable: 0,
      truncated: 0,
      stored: 1,
    })
  })

  test('an origin that was restored gets a new epoch, and its older events replace newer ones', async () => {
    await using etcd = await startEtcd()
    const origin = new MemoryOrigin()
    for (let index = 0; index < 50; index++) origin.put(`e${index}`)
    const backup = { version: origin.version, events: new Map(origin.events) }
    const clusters = new Map([['c', mirroredCluster('c')]])
    const options = { clusters, originFor: () => origin, leaseTtlSeconds }
    await using replica = new MirrorReplica(etcd.endpoints, 'one', options)
    await untilMirrored(replica, origin)
    for (let index = 0; index < 10; index++) origin.put(`e${index}`)
    await untilMirrored(replica, origin)
    origin.restore(backup)
    origin.put('e1')
    const counters = () => replica.mirrors.stats().get('c')?.counters
    await eventually('the restore is noticed', () => counters()?.restores === 1, 15_000)
    await eventually(
      'the restored state is mirrored',
      async () => {
        const notes = await notesOf(replica, 'c')
        const { note } = origin.events.get('a/e2')?.event ?? assert.fail()
        return notes['e2'] === `${note} in epoch 1` && notes['e1']?.endsWith('epoch 1') === true
      },
      15_000,
    )
    // What the restore did not change was not written again.
    assert.match((await notesOf(replica, 'c'))['e40'] ?? '', /in epoch 0$/)
    const status = () => replica.mirrors.statuses.get('c')
    await eventually('the status has the epoch', () => status().epoch === 1, 15_000)
  })

  test('a lost record does not stop a mirror whose events are of a later epoch', async () => {
    await using etcd = await startEtcd()
    const origin = new MemoryOrigin()
    origin.put('a')
    const backup = { version: origin.version, events: new Map(origin.events) }
    const clusters = new Map([['c', mirroredCluster('c')]])
    const options = { clusters, originFor: () => origin, leaseTtlSeconds }
    {
      await using first = new MirrorReplica(etcd.endpoints, 'first', options)
      for (let version = 0; version < 10; version++) origin.put('a')
      await untilMirrored(first, origin)
      origin.restore(backup)
      origin.put('a')
      origin.put('b')
      await untilMirrored(first, origin, 1)
    }
    await using second = new MirrorReplica(etcd.endpoints, 'second', {
      ...options,
      clusters: new Map(),
    })
    const key = Buffer.from(mirrorKey(mirrorPrefix, 'c'))
    await second.client.txn({ success: [{ type: 'delete', key }] })
    await using third = new MirrorReplica(etcd.endpoints, 'third', options)
    origin.put('a')
    await eventually(
      'the newest state is mirrored',
      async () =>
        (await notesOf(third, 'c'))['a']?.startsWith(
          `${origin.events.get('a/a')?.event.note} in`,
        ) === true,
      15_000,
    )
  })

  test('a changed file starts, changes and stops mirrors', async () => {
    await using etcd = await startEtcd()
    const origins = new Map<string, MemoryOrigin>()
    const originFor = (cluster: string) => {
      const origin = origins.get(cluster) ?? new MemoryOrigin()
      origins.set(cluster, origin)
      return origin
    }
    originFor('c').put('x', { namespace: 'a' })
    originFor('c').put('y', { namespace: 'b' })
    originFor('d').put('z')
    const clusters = new Map([['c', mirroredCluster('c', { namespaces: ['a'] })]])
    const options = { clusters, originFor, leaseTtlSeconds }
    await using replica = new MirrorReplica(etcd.endpoints, 'one', options)
    const has = async (cluster: string, names: string) =>
      Object.keys(await notesOf(replica, cluster)).join() === names
    await eventually('the first namespace is mirrored', () => has('c', 'x'), 10_000)
    clusters.set('c', mirroredCluster('c', { namespaces: ['a', 'b'] }))
    clusters.set('d', mirroredCluster('d'))
    replica.reload()
    await eventually('the second namespace is mirrored', () => has('c', 'x,y'), 10_000)
    await eventually('the second cluster is mirrored', () => has('d', 'z'), 10_000)
    clusters.delete('c')
    replica.reload()
    assert.deepEqual([...replica.mirrors.stats().keys()], ['d'])
    originFor('c').put('late')
    originFor('d').put('later')
    await eventually('the other goes on', () => has('d', 'later,z'), 10_000)
    assert.ok(await has('c', 'x,y'))
  })

  test('every replica knows how each mirror is', async () => {
    await using etcd = await startEtcd()
    const bad = new MemoryOrigin()
    bad.listPage = async () => {
      throw new OriginError('refused', 'the origin responded 403: events is forbidden')
    }
    const good = new MemoryOrigin()
    good.put('a')
    const clusters = new Map(['good', 'bad'].map((name) => [name, mirroredCluster(name)]))
    const originFor = (name: string) => (name === 'good' ? good : bad)
    const options = { clusters, originFor, leaseTtlSeconds }
    await using first = new MirrorReplica(etcd.endpoints, 'first', options)
    const leads = (name: string) => first.mirrors.stats().get(name)?.isLeader === true
    await eventually('the first leads', () => leads('good') && leads('bad'))
    await using second = new MirrorReplica(etcd.endpoints, 'second', options)
    const { statuses } = second.mirrors
    assert.equal(statuses.get('none').state, 'Waiting')
    await eventually('it follows', () => statuses.get('good').state === 'Following', 15_000)
    await eventually('it is stalled', () => statuses.get('bad').state === 'Stalled', 15_000)
    assert.match(statuses.get('bad').message, /403: events is forbidden/)
    const { replica, lagMs = Number.NaN, lastEventAtMs = 0 } = statuses.get('good')
    assert.equal(replica, 'first')
    assert.ok(lagMs < 15_000 && Date.now() - lastEventAtMs < 60_000)
  })
})
