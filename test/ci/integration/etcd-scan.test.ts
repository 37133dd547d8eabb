/** Scans of real members of several versions: as streams where they have them, else as ranges. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdClient, prefixEnd, type ScanChunk } from '../../../src/etcd/client.ts'
import { type EtcdCluster, startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { etcdVersions, versionOf } from '../../support/etcd-versions.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'

const prefix = Buffer.from('/scan/')
const range = { key: prefix, rangeEnd: prefixEnd(prefix), isWhole: true }
const keysMax = 3_000
const putsPerTxn = 100
const valueBytes = 4_000
const streams37 = versionOf('3.7.1')

interface Opened extends Disposable {
  readonly client: EtcdClient
  /** The paths of the calls so far. */
  readonly paths: string[]
}

function open(cluster: Pick<EtcdCluster, 'endpoints' | 'tls'>): Opened {
  const paths: string[] = []
  const client = new EtcdClient({
    ...cluster,
    defaultTimeoutMs: 10_000,
    onCall: ({ path }) => paths.push(path.slice(path.lastIndexOf('/') + 1)),
  })
  return { client, paths, [Symbol.dispose]: () => client.close() }
}

async function fill(client: EtcdClient, fillWith = 1, bytes = valueBytes): Promise<void> {
  const value = Buffer.alloc(bytes, fillWith)
  for (let from = 0; from < keysMax; from += putsPerTxn) {
    const puts = Array.from({ length: putsPerTxn }, (_, n) => ({
      type: 'put' as const,
      key: Buffer.from(`${prefix}${String(from + n).padStart(6, '0')}`),
      value,
    }))
    await client.txn({ success: puts })
  }
}

/** Values of a megabyte, after the others. */
async function putLarge(client: EtcdClient, count: number): Promise<void> {
  const value = Buffer.alloc(1024 * 1024, 1)
  for (let n = 0; n < count; n++) {
    const key = Buffer.from(`${prefix}large-${String(n).padStart(3, '0')}`)
    await client.txn({ success: [{ type: 'put', key, value }] })
  }
}

/** What was read, after a check that it is one state. */
async function read(
  scan: AsyncIterable<ScanChunk>,
  between?: (chunk: number) => Promise<void>,
): Promise<{ readonly keys: number; readonly connection: number }> {
  const keys: string[] = []
  const fills = new Set<number | undefined>()
  let connection = 0
  let chunks = 0
  for await (const chunk of scan) {
    for (const { key, value } of chunk.kvs) {
      keys.push(key.toString())
      fills.add(value[0])
    }
    connection = chunk.connection
    await between?.(chunks++)
  }
  assert.deepEqual(keys, [...new Set(keys)].sort())
  assert.equal(fills.size, 1, 'one state')
  return { keys: keys.length, connection }
}

for (const { name, binary, skip } of etcdVersions) {
  describe(`a scan of ${name}`, { skip }, () => {
    test('reads one state, whatever is written meanwhile, with and without TLS', async () => {
      for (const encrypted of [false, true]) {
        await using etcd = await startEtcd({ binary, encrypted })
        using opened = open(etcd)
        const { client, paths } = opened
        await fill(client)
        const between = async (chunk: number) => {
          if (chunk === 1) await fill(client, 2)
        }
        assert.equal((await read(client.scan(range), between)).keys, keysMax)
        const version = (await client.status(etcd.endpoints[0] ?? '')).version
        assert.equal(paths.includes('RangeStream'), !/^3\.[56]\./.test(version), version)
      }
    })

    test('of a state that is compacted meanwhile fails with `compacted`', async () => {
      await using etcd = await startEtcd({ binary })
      using opened = open(etcd)
      const { client } = opened
      await fill(client)
      const between = async (chunk: number) => {
        if (chunk !== 0) return
        await fill(client, 2)
        const { revision } = await client.range({ key: prefix })
        await client.compact(revision)
      }
      await assert.rejects(read(client.scan(range), between), { kind: 'compacted' })
    })

    test('goes on at the same key and revision when its connection breaks', async () => {
      await using etcd = await startEtcd({ binary })
      await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
      using opened = open({ endpoints: [proxy.address], tls: undefined })
      using writing = open(etcd)
      const { client } = opened
      await fill(writing.client)
      await client.range({ key: prefix })
      const before = client.newestConnection
      const between = async (chunk: number) => {
        if (chunk !== 1) return
        proxy.cut()
        await fill(writing.client, 2)
      }
      const { keys, connection } = await read(client.scan(range), between)
      assert.equal(keys, keysMax)
      assert.ok(connection > before, 'the rest came over another connection')
    })
  })
}

describe('streams of etcd 3.7', { skip: streams37.skip }, () => {
  const { binary } = streams37

  test('a consumer that does not read makes etcd wait', async () => {
    await using etcd = await startEtcd({ binary })
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    using opened = open({ endpoints: [proxy.address], tls: undefined })
    const { client } = opened
    await fill(client)
    await putLarge(client, 10)
    const scan = client.scan(range)
    await scan.next()
    await scan.next()
    const begun = proxy.bytesToClient
    let seen = -1
    // Until nothing arrives any more.
    while (seen !== proxy.bytesToClient) {
      seen = proxy.bytesToClient
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    assert.ok(seen - begun < 10 * 1024 * 1024, `${seen - begun} bytes were sent ahead`)
    let left = 0
    for await (const { kvs } of scan) left += kvs.length
    assert.ok(left > 0)
  })

  test('a message that is too large is read in ranges', async () => {
    await using etcd = await startEtcd({ binary })
    using opened = open(etcd)
    const { client, paths } = opened
    // Small values make etcd put many keys into the next message, and the large ones are all in it.
    await fill(client, 1, 10)
    await putLarge(client, 40)
    assert.equal((await read(client.scan(range))).keys, keysMax + 40)
    assert.ok(paths.filter((path) => path === 'RangeStream').length > 1)
  })

  test('a member that is paused in a stream is left for another one', async () => {
    await using etcd = await startEtcdCluster(3, { binary })
    using opened = open(etcd)
    const { client, paths } = opened
    await fill(client)
    let paused = -1
    const between = async (chunk: number) => {
      if (chunk !== 3) return
      paused = etcd.endpoints.indexOf(client.endpoints()[0]?.endpoint ?? '')
      etcd.member(paused).pause()
    }
    const began = performance.now()
    try {
      assert.equal((await read(client.scan(range), between)).keys, keysMax)
    } finally {
      if (paused >= 0) etcd.member(paused).resume()
    }
    assert.ok(performance.now() - began < 20_000)
    assert.ok(paths.includes('RangeStream'))
  })
})

const old = versionOf('3.6.14')
describe('a cluster of two versions', { skip: streams37.skip || old.skip }, () => {
  test('is read with streams or ranges, by what each member has', async () => {
    await using etcd = await startEtcdCluster(3, { binary: old.binary })
    using filling = open(etcd)
    await fill(filling.client)
    const upgraded = etcd.member(0)
    await upgraded.stop()
    await upgraded.start({ binary: streams37.binary })
    for (const [index, hasStreams] of [
      [0, true],
      [1, false],
    ] as const) {
      using opened = open({ endpoints: [etcd.endpoints[index] ?? ''], tls: undefined })
      const { client, paths } = opened
      assert.equal((await read(client.scan(range))).keys, keysMax)
      assert.equal(paths.includes('RangeStream'), hasStreams)
    }
    // A client of a member that is upgraded uses its streams from then on.
    using opened = open({ endpoints: [etcd.endpoints[1] ?? ''], tls: undefined })
    const { client, paths } = opened
    await read(client.scan(range))
    await etcd.member(1).stop()
    await etcd.member(1).start({ binary: streams37.binary })
    await eventually('the client is connected again', () =>
      client.endpoints().every(({ state }) => state === 'ready'),
    )
    assert.equal((await read(client.scan(range))).keys, keysMax)
    assert.ok(paths.includes('RangeStream'))
  })
})
