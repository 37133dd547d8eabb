import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EtcdClient, type KeyValue, prefixEnd, type TxnOp } from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'

const bytes = (text: string) => Buffer.from(text)
const put = (key: string, value = 'v'): TxnOp => ({
  type: 'put',
  key: bytes(key),
  value: bytes(value),
})

function failed(promise: Promise<unknown>): Promise<EtcdError> {
  return promise.then(
    () => assert.fail('it should have failed'),
    (error: unknown) => {
      assert.ok(error instanceof EtcdError, String(error))
      return error
    },
  )
}

describe('etcd client: operations', () => {
  let etcd: EtcdCluster
  let client: EtcdClient

  before(async () => {
    etcd = await startEtcd()
    client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
  })
  after(async () => {
    client.close()
    await etcd[Symbol.asyncDispose]()
  })

  test('range reads back all fields of what a transaction wrote', async () => {
    const { revision, succeeded, results } = await client.txn({ success: [put('r/a', 'one')] })
    assert.equal(succeeded, true)
    assert.deepEqual(results, [{ type: 'put', prevKv: undefined }])
    const read = await client.range({ key: bytes('r/a') })
    const kv: KeyValue = {
      key: bytes('r/a'),
      value: bytes('one'),
      createRevision: revision,
      modRevision: revision,
      version: 1,
      lease: 0n,
    }
    const connection = client.newestConnection
    assert.ok(connection > 0)
    const { connection: over = 0, ...answer } = read
    assert.deepEqual(answer, { revision, kvs: [kv], more: false, count: 1 })
    // Streams and unary calls have one connection each; the reply came over one of them.
    assert.ok(over >= 1 && over <= connection, `over connection ${over} of ${connection}`)
  })

  test('range supports limit, keysOnly, countOnly and an old revision', async () => {
    const range = { key: bytes('page/'), rangeEnd: prefixEnd(bytes('page/')) }
    const { revision } = await client.txn({
      success: [put('page/1'), put('page/2'), put('page/3')],
    })
    await client.txn({ success: [{ type: 'delete', key: bytes('page/2') }] })
    const page = await client.range({ ...range, limit: 1 })
    assert.deepEqual([page.kvs.length, page.more, page.count], [1, true, 2])
    const keys = await client.range({ ...range, keysOnly: true })
    assert.deepEqual(
      keys.kvs.map((kv) => [kv.key.toString(), kv.value.length]),
      [
        ['page/1', 0],
        ['page/3', 0],
      ],
    )
    const count = await client.range({ ...range, countOnly: true })
    assert.deepEqual([count.kvs.length, count.count], [0, 2])
    const old = await client.range({ ...range, revision })
    assert.equal(old.count, 3)
    assert.equal(old.revision, revision + 1)
  })

  test('nested transactions of one txn succeed or fail by their own compare', async () => {
    await client.txn({ success: [put('n/taken', 'before')] })
    const create = (key: string): TxnOp => ({
      type: 'txn',
      compare: [{ key: bytes(key), target: 'modRevision', to: 0 }],
      success: [put(key, 'new')],
      failure: [{ type: 'range', key: bytes(key) }],
    })
    const { revision, succeeded, results } = await client.txn({
      success: [create('n/1'), create('n/taken'), create('n/2')],
    })
    assert.equal(succeeded, true)
    const [first, taken, second] = results
    assert.deepEqual(first, {
      type: 'txn',
      succeeded: true,
      results: [{ type: 'put', prevKv: undefined }],
    })
    assert.deepEqual(second, first)
    assert.ok(taken?.type === 'txn' && taken.results[0]?.type === 'range')
    assert.equal(taken.succeeded, false)
    assert.equal(taken.results[0].kvs[0]?.value.toString(), 'before')
    const range = { key: bytes('n/'), rangeEnd: prefixEnd(bytes('n/')) }
    const { kvs } = await client.range(range)
    const written = kvs.filter((kv) => kv.modRevision === revision)
    assert.deepEqual(
      written.map((kv) => kv.key.toString()),
      ['n/1', 'n/2'],
    )
  })

  test('every kind of compare decides a transaction', async () => {
    const key = bytes('cmp')
    const { id } = await client.grantLease(60)
    await client.txn({ success: [put('cmp', 'a')] })
    const { revision } = await client.txn({
      success: [{ type: 'put', key, value: bytes('b'), lease: id }],
    })
    const holds = async (compare: object) =>
      (await client.txn({ compare: [{ key, ...compare } as never], success: [] })).succeeded
    assert.equal(await holds({ target: 'version', to: 2 }), true)
    assert.equal(await holds({ target: 'version', is: '<', to: 2 }), false)
    assert.equal(await holds({ target: 'modRevision', to: revision }), true)
    assert.equal(await holds({ target: 'modRevision', is: '!=', to: revision }), false)
    assert.equal(await holds({ target: 'createRevision', is: '>', to: 0 }), true)
    assert.equal(await holds({ target: 'createRevision', to: 0 }), false)
    assert.equal(await holds({ target: 'lease', to: id }), true)
    assert.equal(await holds({ target: 'lease', to: 0n }), false)
    assert.equal(await holds({ target: 'value', to: bytes('b') }), true)
    assert.equal(await holds({ target: 'value', to: bytes('a') }), false)
    const all = { target: 'version', rangeEnd: prefixEnd(key), is: '>', to: 1 }
    assert.equal(await holds(all), true)
    await client.revokeLease(id)
  })

  test('a delete returns the deleted key-values', async () => {
    await client.txn({ success: [put('d/1', 'x'), put('d/2', 'y')] })
    const op: TxnOp = {
      type: 'delete',
      key: bytes('d/'),
      rangeEnd: prefixEnd(bytes('d/')),
      prevKv: true,
    }
    const { results } = await client.txn({ success: [op] })
    assert.ok(results[0]?.type === 'delete')
    assert.equal(results[0].deleted, 2)
    assert.deepEqual(
      results[0].prevKvs.map((kv) => kv.value.toString()),
      ['x', 'y'],
    )
    const overwritten = await client.txn({ success: [{ ...put('r/p'), prevKv: true } as TxnOp] })
    assert.deepEqual(overwritten.results, [{ type: 'put', prevKv: undefined }])
  })

  test('a request that etcd rejects is reported as not applied, with the reason', async () => {
    const duplicate = await failed(client.txn({ success: [put('x'), put('x')] }))
    assert.deepEqual([duplicate.kind, duplicate.mayHaveBeenApplied], ['invalid', false])
    const many = Array.from({ length: 129 }, (_, index) => put(`many/${index}`))
    const tooMany = await failed(client.txn({ success: many }))
    assert.deepEqual([tooMany.kind, tooMany.mayHaveBeenApplied], ['invalid', false])
    for (const size of [1_700_000, 3_000_000]) {
      const tooLarge = await failed(client.txn({ success: [put('large', 'x'.repeat(size))] }))
      assert.deepEqual([tooLarge.kind, tooLarge.mayHaveBeenApplied], ['too-large', false])
    }
    assert.equal((await client.range({ key: bytes('large') })).count, 0)
    const future = await failed(client.range({ key: bytes('x'), revision: 1_000_000 }))
    assert.equal(future.kind, 'future-revision')
    const lost = await failed(
      client.txn({
        success: [{ type: 'put', key: bytes('x'), value: bytes('1'), lease: 12_345n }],
      }),
    )
    assert.deepEqual([lost.kind, lost.mayHaveBeenApplied], ['not-found', false])
    const nonsense = await failed(client.range({ key: bytes('x'), revision: 0.5 }))
    assert.equal(nonsense.kind, 'invalid')
  })

  test('compact removes old revisions, and a second compact of the same revision fails', async () => {
    const { revision } = await client.txn({ success: [put('c', '1')] })
    await client.txn({ success: [put('c', '2')] })
    await client.compact(revision + 1)
    assert.equal((await failed(client.range({ key: bytes('c'), revision }))).kind, 'compacted')
    const again = await failed(client.compact(revision))
    assert.deepEqual([again.kind, again.mayHaveBeenApplied], ['compacted', false])
  })

  test('a lease is granted, renewed and read, and its keys are deleted when it is revoked', async () => {
    const { id, ttlSeconds } = await client.grantLease(100)
    assert.equal(typeof id, 'bigint')
    assert.equal(ttlSeconds, 100)
    await client.txn({ success: [{ type: 'put', key: bytes('l'), value: bytes(''), lease: id }] })
    assert.equal((await client.range({ key: bytes('l') })).kvs[0]?.lease, id)
    assert.equal(await client.keepLeaseAlive(id), 100)
    const ttl = await client.leaseTtl(id)
    assert.equal(ttl.grantedTtlSeconds, 100)
    assert.ok(ttl.ttlSeconds > 90 && ttl.ttlSeconds <= 100)
    await client.revokeLease(id)
    assert.equal((await client.range({ key: bytes('l') })).count, 0)
    assert.equal(await client.keepLeaseAlive(id), 0)
    assert.equal((await client.leaseTtl(id)).ttlSeconds, -1)
    assert.equal((await failed(client.revokeLease(id))).kind, 'not-found')
  })

  test('status describes the member', async () => {
    const [endpoint = ''] = etcd.endpoints
    const status = await client.status(endpoint)
    assert.match(status.version, /^3\.\d+\.\d+$/)
    assert.equal(status.leader, status.memberId)
    assert.ok(status.dbBytes > 0 && status.revision > 1 && status.raftTerm > 0)
    assert.deepEqual(await client.alarms(), [])
    assert.equal((await failed(client.status('http://nobody:1'))).kind, 'invalid')
    assert.deepEqual(client.endpoints(), [
      { endpoint, state: 'ready', lastError: undefined, renewalError: undefined },
    ])
    assert.equal(client.overdueMs(), 0)
  })

  test('close ends pending calls and watches, and rejects new calls', async () => {
    const own = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    await own.range({ key: bytes('x') })
    const { signal } = new AbortController()
    const watching = failed(
      (async () => {
        for await (const batch of own.watch({ key: bytes('zzz'), startRevision: 1e9, signal })) {
          assert.equal(batch.events.length, 0)
        }
      })(),
    )
    own.close()
    own.close()
    assert.equal((await watching).kind, 'cancelled')
    assert.equal((await failed(own.range({ key: bytes('x') }))).kind, 'cancelled')
    const late = await failed(own.txn({ success: [put('never')] }))
    assert.deepEqual([late.kind, late.mayHaveBeenApplied], ['cancelled', false])
    assert.equal((await client.range({ key: bytes('never') })).count, 0)
  })
})

test('puts fail while etcd is out of space, reads and deletes continue, and the alarm is listed', async () => {
  const quota = 4 * 1024 * 1024
  await using etcd = await startEtcd({ args: [`--quota-backend-bytes=${quota}`] })
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
  try {
    let error: EtcdError | undefined
    // etcd checks its size when it commits, ten times a second, so fast writers exceed the 4
    // MiB.
    for (let index = 0; index < 500 && error === undefined; index++) {
      await client
        .txn({ success: [put(`fill/${index}`, 'x'.repeat(200_000))] })
        .catch((reason: EtcdError) => {
          error = reason
        })
    }
    assert.equal(error?.kind, 'no-space')
    assert.equal((await failed(client.grantLease(10))).kind, 'no-space')
    assert.equal((await client.alarms())[0]?.type, 'no-space')
    assert.equal((await client.range({ key: bytes('fill/0') })).count, 1)
    const { results } = await client.txn({ success: [{ type: 'delete', key: bytes('fill/0') }] })
    assert.ok(results[0]?.type === 'delete' && results[0].deleted === 1)
  } finally {
    client.close()
  }
})

test('a client certificate is accepted over TLS; a missing one and one of another authority are not', async () => {
  await using etcd = await startEtcd({ encrypted: true })
  const { endpoints, tls } = etcd
  const allowed = new EtcdClient({ endpoints, tls, defaultTimeoutMs: 5_000 })
  const anonymous = new EtcdClient({ endpoints, tls: { ca: tls?.ca }, defaultTimeoutMs: 1_500 })
  const { cert: ca } = await CertificateAuthority.create('another')
  const mistrustful = new EtcdClient({ endpoints, tls: { ...tls, ca }, defaultTimeoutMs: 1_500 })
  try {
    await allowed.txn({ success: [put('s', 'secret')] })
    assert.equal((await allowed.range({ key: bytes('s') })).count, 1)
    const [refused, mistrusted] = await Promise.all([
      failed(anonymous.txn({ success: [put('s')] })),
      failed(mistrustful.txn({ success: [put('s')] })),
    ])
    assert.equal(refused.kind, 'unavailable')
    assert.deepEqual([mistrusted.kind, mistrusted.mayHaveBeenApplied], ['unavailable', false])
    assert.match(mistrusted.message, /certificate/)
    assert.equal((await allowed.range({ key: bytes('s') })).kvs[0]?.version, 1)
  } finally {
    for (const client of [allowed, anonymous, mistrustful]) client.close()
  }
})

test('the constructor rejects an invalid endpoint or certificate', () => {
  const make = (endpoints: readonly string[], tls?: { readonly ca: Buffer }) => () =>
    new EtcdClient({ endpoints, tls, defaultTimeoutMs: 1_000 })
  const isInvalid = (error: unknown) => error instanceof EtcdError && error.kind === 'invalid'
  assert.throws(make([]), isInvalid)
  assert.throws(make(['etcd']), isInvalid)
  assert.throws(make(['ftp://etcd:2379']), isInvalid)
  assert.throws(make(['https://etcd:2379'], { ca: bytes('no certificate') }), isInvalid)
})
