/** Mirrors on a real etcd whose origin is renewed, moved or replaced between two terms. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { ClusterConfig } from '../../../src/clusters/clusters-file.ts'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { MemoryOrigin } from '../../../src/mirror/memory-origin.fixture.ts'
import type { MirrorRecordContent } from '../../../src/mirror/mirror-record.ts'
import { OriginError } from '../../../src/mirror/origin.ts'
import { mirrorKey } from '../../../src/storage/etcd/keys.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { MirrorReplica, mirroredCluster, mirrorPrefix } from '../../support/mirror-replica.ts'

const uid = '0f7e9c51-54f2-4f0c-9f0e-0d6ad4f0c1aa'
const otherUid = '5b0f8d3e-7a0d-4b53-8c11-9d2f5a2f9f10'
const key = Buffer.from(mirrorKey(mirrorPrefix, 'c'))

interface Place {
  readonly address?: string
  readonly ca?: string
  readonly identity?: string
}

function clusterAt({ address = 'https://c.example:6443', ca = 'ca-1', identity }: Place) {
  const server = {
    url: new URL(address),
    ca,
    serverName: undefined,
    clientCertificate: undefined,
    token: undefined,
    fingerprint: '',
  }
  const config = mirroredCluster('c', identity === undefined ? {} : { identity })
  return new Map<string, ClusterConfig>([['c', { ...config, kubeconfig: () => server }]])
}

const readRecord = async (client: EtcdClient): Promise<Partial<MirrorRecordContent>> => {
  const { kvs } = await client.range({ key })
  return JSON.parse(kvs[0]?.value.toString() ?? '{}')
}

/** One term: what it requested of the origin, its record, and how often it started over. */
async function term(etcd: EtcdCluster, origin: MemoryOrigin, place: Place) {
  origin.requests.length = 0
  // A record with this version was written after the origin was identified.
  const position = origin.put('news')
  await using replica = new MirrorReplica(etcd.endpoints, 'one', {
    clusters: clusterAt(place),
    originFor: () => origin,
    leaseTtlSeconds: 2,
  })
  const { client, mirrors } = replica
  const isSaved = async () => {
    const { positions = {} } = await readRecord(client)
    return positions[''] === position
  }
  await eventually('it watches', () => origin.requests.includes('watch'), 15_000)
  await eventually('its position is saved', isSaved, 15_000)
  const record = await readRecord(client)
  const restores = mirrors.stats().get('c')?.counters.restores
  return { requests: [...origin.requests], record, restores }
}

const resumed = ['list 1', 'watch']

async function started(): Promise<{ etcd: EtcdCluster; origin: MemoryOrigin }> {
  const etcd = await startEtcd()
  const origin = new MemoryOrigin()
  for (let index = 0; index < 5; index++) origin.put(`e${index}`)
  return { etcd, origin }
}

describe('the identity of an origin', () => {
  test('its uid outlives a new authority, a new address, and credentials that may not read it', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    origin.uid = uid
    const first = await term(etcd, origin, {})
    assert.deepEqual(first.requests, ['list 500', 'watch'])
    assert.equal(first.record.originUid, uid)
    for (const place of [{ ca: 'ca-1 ca-2' }, { ca: 'ca-3', address: 'https://10.0.0.2' }]) {
      const { requests, restores, record } = await term(etcd, origin, place)
      assert.deepEqual([requests, restores], [resumed, 0], JSON.stringify(place))
      assert.deepEqual([record.epoch, record.originUid], [0, uid])
    }
    origin.uid = undefined
    const unreadable = await term(etcd, origin, { ca: 'ca-4', address: 'https://10.0.0.2' })
    assert.deepEqual([unreadable.requests, unreadable.restores], [resumed, 0])
    // The uid stays known: it still distinguishes another cluster later.
    assert.equal(unreadable.record.originUid, uid)
  })

  test('another uid is another cluster, at the same address and with the same authority', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    origin.uid = uid
    await term(etcd, origin, {})
    origin.uid = otherUid
    const { requests, record, restores } = await term(etcd, origin, {})
    assert.deepEqual([requests, restores], [['list 500', 'watch'], 1])
    assert.deepEqual([record.epoch, record.originUid], [1, otherUid])
    // A cluster without a readable uid, elsewhere: nothing of the one before is left.
    origin.uid = undefined
    const third = await term(etcd, origin, { ca: 'ca-9', address: 'https://10.0.0.9' })
    assert.deepEqual([third.record.epoch, third.record.originUid], [2, undefined])
  })

  test('without a uid, a rotation at the same address is not another cluster', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    await term(etcd, origin, {})
    const rotated = await term(etcd, origin, { ca: 'ca-1 ca-2', identity: 'prod' })
    assert.deepEqual([rotated.requests, rotated.restores], [resumed, 0])
    assert.equal((await term(etcd, origin, { identity: 'prod-2' })).restores, 1)
  })

  test('a first name is recorded, and another one lists again, although the uid is the same', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    origin.uid = uid
    await term(etcd, origin, {})
    const named = await term(etcd, origin, { identity: 'prod' })
    assert.deepEqual([named.requests, named.restores], [resumed, 0])
    assert.deepEqual([named.record.originName, named.record.originUid], ['prod', uid])
    // A name that is left out stays recorded.
    assert.equal((await term(etcd, origin, {})).record.originName, 'prod')
    const { requests, restores, record } = await term(etcd, origin, { identity: 'prod-2' })
    assert.deepEqual([requests, restores], [['list 500', 'watch'], 1])
    assert.deepEqual([record.originName, record.originUid, record.epoch], ['prod-2', uid, 1])
  })

  test('a record of the version before is continued, and one of ours is readable by it', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    origin.uid = uid
    const { record } = await term(etcd, origin, {})
    assert.equal(record.origin, hash('sha256', 'ca-1'))
    const { originServer, originUid, ...old } = record
    assert.deepEqual([originServer, originUid], ['https://c.example:6443/', uid])
    const value = Buffer.from(JSON.stringify(old))
    const success = [{ type: 'put', key, value }] as const
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    await client.txn({ compare: [], success })
    client.close()
    const upgraded = await term(etcd, origin, {})
    assert.deepEqual([upgraded.requests, upgraded.restores], [resumed, 0])
    assert.deepEqual([upgraded.record.epoch, upgraded.record.originUid], [0, uid])
  })

  test('a mirror of a moved cluster waits for its uid, and reports why', async () => {
    const { etcd, origin } = await started()
    await using _etcd = etcd
    origin.uid = uid
    await term(etcd, origin, {})
    let isAway = true
    origin.clusterUid = async () => {
      if (isAway) throw new OriginError('unavailable', 'the origin responded 503')
      return uid
    }
    // Nothing depends on it while the address is the same.
    const same = await term(etcd, origin, {})
    assert.deepEqual([same.requests, same.restores], [resumed, 0])
    origin.requests.length = 0
    await using replica = new MirrorReplica(etcd.endpoints, 'two', {
      clusters: clusterAt({ ca: 'ca-2', address: 'https://10.0.0.1' }),
      originFor: () => origin,
      leaseTtlSeconds: 2,
    })
    const message = () => replica.mirrors.statuses.get('c').message
    await eventually('it says why', () => message() === 'the origin responded 503', 15_000)
    assert.deepEqual(origin.requests, [])
    isAway = false
    await eventually('it goes on', () => origin.requests.includes('watch'), 15_000)
    assert.deepEqual(origin.requests, resumed)
  })
})
