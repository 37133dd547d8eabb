import assert from 'node:assert/strict'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  EtcdClient,
  prefixEnd,
  type TxnOp,
  type Watch,
  type WatchBatch,
} from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import { pause } from '../../../src/lib/abort.ts'
import { type EtcdCluster, startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'

const bytes = (text: string) => Buffer.from(text)
const put = (key: string, value = 'v'): TxnOp => ({
  type: 'put',
  key: bytes(key),
  value: bytes(value),
})
const under = (prefix: string) => ({ key: bytes(prefix), rangeEnd: prefixEnd(bytes(prefix)) })

/** Reads until `enough` holds, for at most ten seconds. Returns the batches. */
async function collect(
  watch: Watch,
  ending: AbortController,
  enough: (batches: readonly WatchBatch[]) => boolean,
): Promise<readonly WatchBatch[]> {
  const batches: WatchBatch[] = []
  const timer = setTimeout(() => ending.abort(), 10_000)
  for await (const batch of watch) {
    batches.push(batch)
    if (enough(batches)) ending.abort()
  }
  clearTimeout(timer)
  assert.ok(enough(batches), 'the watch did not deliver in time')
  return batches
}

const keysOf = (batches: readonly WatchBatch[]) =>
  batches.flatMap((batch) => batch.events.map((event) => event.kv.key.toString()))

/** Checks what a watch promises of its batches: whole revisions, in order. */
function assertOrdered(batches: readonly WatchBatch[]): void {
  let last = 0
  for (const batch of batches) {
    for (const event of batch.events) {
      assert.ok(event.kv.modRevision > last || batch.events[0] !== event, 'a revision was split')
      assert.ok(event.kv.modRevision >= last, 'revisions are out of order')
      last = event.kv.modRevision
    }
    assert.ok(batch.revision >= last, 'the revision of the batch is lower than that of its events')
    last = batch.revision
  }
}

describe('a watch of one etcd member', () => {
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

  /** How many watch streams the member has accepted so far. */
  async function watchStreams(): Promise<number> {
    const metrics = await (await fetch(`${etcd.endpoints[0]}/metrics`)).text()
    const started = /^grpc_server_started_total\{grpc_method="Watch",.*\} (\d+)$/m.exec(metrics)
    return Number(started?.[1])
  }

  test('delivers history first, then new changes, each with the previous value', async () => {
    const { revision } = await client.txn({ success: [put('w/a', '1')] })
    await client.txn({ success: [put('w/a', '2'), put('w/b', '3')] })
    await client.txn({ success: [put('other')] })
    const ending = new AbortController()
    const { signal } = ending
    const watch = client.watch({ ...under('w/'), startRevision: revision, prevKv: true, signal })
    const collecting = collect(watch, ending, (batches) => keysOf(batches).length === 4)
    await pause(100)
    await client.txn({ success: [{ type: 'delete', key: bytes('w/a') }] })
    const batches = await collecting
    assertOrdered(batches)
    assert.deepEqual(
      batches.flatMap((batch) =>
        batch.events.map(({ type, kv, prevKv }) => [
          type,
          kv.key.toString(),
          kv.value.toString(),
          prevKv?.value.toString(),
          kv.modRevision - revision,
        ]),
      ),
      [
        ['put', 'w/a', '1', undefined, 0],
        ['put', 'w/a', '2', '1', 1],
        ['put', 'w/b', '3', undefined, 1],
        ['delete', 'w/a', '', '2', 3],
      ],
    )
  })

  test('responses larger than the message limit of etcd arrive as whole revisions', async () => {
    const value = 'x'.repeat(60_000)
    let first = 0
    for (let round = 0; round < 6; round++) {
      const success = Array.from({ length: 20 }, (_, index) => put(`big/${index}`, value))
      const { revision } = await client.txn({ success })
      first ||= revision
    }
    const ending = new AbortController()
    const watch = client.watch({
      ...under('big/'),
      startRevision: first,
      prevKv: true,
      signal: ending.signal,
    })
    const batches = await collect(watch, ending, (all) => keysOf(all).length >= 120)
    assertOrdered(batches)
    assert.equal(keysOf(batches).length, 120)
    const sizes = new Map<number, number>()
    for (const { kv } of batches.flatMap((batch) => batch.events)) {
      sizes.set(kv.modRevision, (sizes.get(kv.modRevision) ?? 0) + 1)
    }
    assert.deepEqual([...sizes.values()], [20, 20, 20, 20, 20, 20])
  })

  // Split into parts, they took etcd longer than the watch waits, at each attempt.
  test('120,000 deletes in one revision arrive within seconds', async () => {
    const perTxn = 120
    for (let from = 0; from < 120_000; from += perTxn) {
      const success = Array.from({ length: perTxn }, (_, n) => put(`mass/${from + n}`, ''))
      await client.txn({ success })
    }
    const range = under('mass/')
    const { revision } = await client.range({ ...range, limit: 1 })
    const ending = new AbortController()
    const watch = client.watch({ ...range, startRevision: revision + 1, signal: ending.signal })
    const deletes = collect(watch, ending, (batches) => keysOf(batches).length > 0)
    const { revision: deletedAt } = await client.txn({ success: [{ type: 'delete', ...range }] })
    const batches = await deletes
    assertOrdered(batches)
    const whole = batches.filter(({ events }) => events.length > 0)
    assert.deepEqual(
      whole.map((batch) => [batch.revision, batch.events.length]),
      [[deletedAt, 120_000]],
    )
  })

  test('requested progress is reported although no key under the prefix changes', async () => {
    const { revision } = await client.txn({ success: [put('elsewhere')] })
    const reached = (all: readonly WatchBatch[]) => (all.at(-1)?.revision ?? 0) >= revision
    const order: string[] = []
    const follow = async (name: string, onStart: (watch: Watch) => void): Promise<void> => {
      const ending = new AbortController()
      const { signal } = ending
      const watch = client.watch({ ...under('quiet/'), startRevision: revision, signal })
      onStart(watch)
      assert.deepEqual(keysOf(await collect(watch, ending, reached)), [])
      order.push(name)
    }
    await Promise.all([
      // The client itself asks for progress after a second of silence.
      follow('patient', () => {}),
      follow('asking', (watch) => setTimeout(() => watch.requestProgress(), 50)),
    ])
    assert.deepEqual(order, ['asking', 'patient'])
  })

  test('reports the oldest revision that is left when it starts at a compacted one', async () => {
    const { revision } = await client.txn({ success: [put('gone/1')] })
    await client.txn({ success: [put('gone/2')] })
    await client.compact(revision + 1)
    const { signal } = new AbortController()
    await assert.rejects(
      async () => {
        for await (const batch of client.watch({
          ...under('gone/'),
          startRevision: revision,
          signal,
        })) {
          assert.fail(`delivered ${batch.events.length} events`)
        }
      },
      (error) =>
        error instanceof EtcdError &&
        error.kind === 'compacted' &&
        error.compactRevision === revision + 1,
    )
  })

  test('the signal ends a watch without an error, at any moment', async () => {
    const before = new AbortController()
    before.abort()
    const never = client.watch({ ...under('e/'), startRevision: 1, signal: before.signal })
    for await (const batch of never) assert.fail(`delivered ${batch.revision}`)
    const { revision } = await client.txn({ success: [put('e/1')] })
    const ending = new AbortController()
    const watch = client.watch({ ...under('e/'), startRevision: revision, signal: ending.signal })
    let count = 0
    for await (const batch of watch) {
      count += batch.events.length
      ending.abort()
    }
    assert.equal(count, 1)
  })

  test('the signal ends a watch also between the start and the first stream', async () => {
    const { revision } = await client.txn({ success: [put('f/1')] })
    const ending = new AbortController()
    const watch = client.watch({ ...under('f/'), startRevision: revision, signal: ending.signal })
    const first = watch[Symbol.asyncIterator]().next()
    ending.abort()
    const late = pause(3_000).then(() => 'still there')
    const end = await Promise.race([first, late])
    assert.deepEqual(end, { done: true, value: undefined })
  })

  test('progress is reported where nothing happens', async () => {
    const { revision } = await client.txn({ success: [put('quiet/1')] })
    const ending = new AbortController()
    const watch = client.watch({
      ...under('quiet/'),
      startRevision: revision + 1,
      signal: ending.signal,
    })
    const seen: number[] = []
    const watching = (async () => {
      for await (const batch of watch) {
        assert.equal(batch.events.length, 0, 'the watch delivered an event')
        seen.push(batch.revision)
        if (seen.length === 3) ending.abort()
      }
    })()
    const asking = setInterval(() => watch.requestProgress(), 200)
    await Promise.race([watching, pause(5_000)])
    clearInterval(asking)
    ending.abort()
    assert.deepEqual(seen, [revision, revision, revision])
  })

  test('opens one stream after a compacted update, whose previous value it does not need', async () => {
    await client.txn({ success: [put('again/1')] })
    const { revision } = await client.txn({ success: [put('again/1')] })
    await client.compact(revision)
    const streams = await watchStreams()
    const ending = new AbortController()
    const watch = client.watch({
      ...under('again/'),
      startRevision: revision + 1,
      prevKv: true,
      signal: ending.signal,
    })
    await client.txn({ success: [put('again/2')] })
    const batches = await collect(watch, ending, (all) => keysOf(all).length > 0)
    assert.deepEqual(keysOf(batches), ['again/2'])
    assert.equal((await watchStreams()) - streams, 1)
  })

  test('delivers the oldest revision that is left without its previous value, which is compacted', async () => {
    await client.txn({ success: [put('oldest/1', 'a')] })
    const { revision } = await client.txn({ success: [put('oldest/1', 'b')] })
    await client.txn({ success: [put('oldest/1', 'c')] })
    await client.compact(revision)
    const streams = await watchStreams()
    const ending = new AbortController()
    const { signal } = ending
    const request = { ...under('oldest/'), startRevision: revision, prevKv: true, signal }
    const batches = await collect(client.watch(request), ending, (all) => keysOf(all).length === 2)
    const events = batches.flatMap((batch) => batch.events)
    assert.deepEqual(
      events.map(({ kv, prevKv }) => [kv.value.toString(), prevKv?.value.toString()]),
      [
        ['b', undefined],
        ['c', 'b'],
      ],
    )
    // The first one tries the revision before; on a busy machine, the second may lack what etcd has.
    assert.ok((await watchStreams()) - streams <= 3)
  })

  test('continues from the oldest revision that is left', async () => {
    const first = await client.txn({ success: [put('left/1')] })
    const second = await client.txn({ success: [put('left/2')] })
    await client.compact(second.revision)
    const ending = new AbortController()
    const watch = client.watch({
      ...under('left/'),
      startRevision: second.revision,
      signal: ending.signal,
    })
    const keys: string[] = []
    for await (const batch of watch) {
      keys.push(...keysOf([batch]))
      if (keys.length > 0) ending.abort()
    }
    assert.deepEqual(keys, ['left/2'])
    assert.equal(second.revision, first.revision + 1)
  })

  test('a consumer that does not read bounds the buffered bytes, and misses nothing', async () => {
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const slow = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 5_000 })
    try {
      const value = 'x'.repeat(200_000)
      const { revision } = await client.txn({ success: [put('slow/first')] })
      const ending = new AbortController()
      const watch = slow.watch({
        ...under('slow/'),
        startRevision: revision,
        signal: ending.signal,
      })
      const batches: WatchBatch[] = []
      for await (const batch of watch) {
        batches.push(batch)
        if (batches.length === 1) {
          const before = proxy.bytesToClient
          for (let index = 0; index < 250; index++) {
            await client.txn({ success: [put(`slow/${index % 10}`, value)] })
          }
          // 50 MB were written; what was transferred is the flow window and the few messages
          // that gRPC reads ahead.
          const crossed = proxy.bytesToClient - before
          assert.ok(
            crossed < 20_000_000,
            `${crossed} bytes were transferred while the consumer did not read`,
          )
        }
        if (keysOf(batches).length === 251) ending.abort()
      }
      assertOrdered(batches)
      assert.equal(keysOf(batches).length, 251)
    } finally {
      slow.close()
    }
  })

  test('a connection that is cut loses and repeats nothing', async () => {
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const cutOff = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 5_000 })
    try {
      const { revision } = await client.txn({ success: [put('cut/start')] })
      const ending = new AbortController()
      const watch = cutOff.watch({
        ...under('cut/'),
        startRevision: revision,
        signal: ending.signal,
      })
      const collecting = collect(watch, ending, (all) => keysOf(all).includes('cut/59'))
      const wanted = ['cut/start']
      for (let index = 0; index < 60; index++) {
        await client.txn({ success: [put(`cut/${index}`)] })
        wanted.push(`cut/${index}`)
        if (index % 15 === 7) proxy.cut()
        await pause(10)
      }
      const batches = await collecting
      assertOrdered(batches)
      assert.deepEqual(keysOf(batches), wanted)
    } finally {
      cutOff.close()
    }
  })

  test('moves from a silent member to another within seconds', async () => {
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const endpoints = [proxy.address, etcd.endpoints[0] ?? '']
    const moving = new EtcdClient({ endpoints, defaultTimeoutMs: 5_000 })
    try {
      // The first of the two, so that the watch begins there.
      while (proxy.connections < 2) await pause(10)
      await pause(200)
      const { revision } = await client.txn({ success: [put('silent/1')] })
      const ending = new AbortController()
      const watch = moving.watch({
        ...under('silent/'),
        startRevision: revision,
        signal: ending.signal,
      })
      const throughProxy = proxy.bytesToClient
      const collecting = collect(watch, ending, (all) => keysOf(all).length === 2)
      await pause(300)
      assert.ok(
        proxy.bytesToClient > throughProxy,
        'the watch is not on the member that is going to fail',
      )
      proxy.set('blackhole')
      const begun = performance.now()
      await client.txn({ success: [put('silent/2')] })
      assert.deepEqual(keysOf(await collecting), ['silent/1', 'silent/2'])
      const tookMs = performance.now() - begun
      assert.ok(tookMs > 1_000 && tookMs < 5_000, `moved after ${tookMs} ms`)
    } finally {
      moving.close()
    }
  })
})

test('a watch survives kills and pauses of members during writes', async () => {
  await using etcd = await startEtcdCluster(3)
  const writer = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 3_000 })
  const reader = new EtcdClient({
    endpoints: [...etcd.endpoints].reverse(),
    defaultTimeoutMs: 3_000,
  })
  try {
    const { revision } = await writer.txn({ success: [put('t/start')] })
    const ending = new AbortController()
    const watch = reader.watch({ ...under('t/'), startRevision: revision, signal: ending.signal })
    const batches: WatchBatch[] = []
    const watching = (async () => {
      for await (const batch of watch) {
        batches.push(batch)
        if (keysOf([batch]).includes('t/end')) ending.abort()
      }
    })()

    let isWriting = true
    const acknowledged: string[] = ['t/start']
    const writing = (async () => {
      for (let index = 0; isWriting; index++) {
        const key = `t/${index}`
        try {
          await writer.txn({ success: [put(key)] })
          acknowledged.push(key)
        } catch (error) {
          assert.ok(error instanceof EtcdError, String(error))
        }
        await pause(10)
      }
    })()

    for (const index of [2, 1, 0]) {
      await pause(500)
      await etcd.member(index).kill()
      await pause(1_000)
      await etcd.member(index).start({ waitForQuorum: true })
    }
    await pause(500)
    etcd.member(2).pause()
    await pause(4_000)
    etcd.member(2).resume()
    isWriting = false
    await writing
    const end = await writer.txn({ success: [put('t/end')] }, { timeoutMs: 10_000 })
    const timer = setTimeout(() => ending.abort(), 15_000)
    await watching
    clearTimeout(timer)

    assertOrdered(batches)
    const delivered = keysOf(batches)
    assert.equal(new Set(delivered).size, delivered.length, 'something came twice')
    const seen = new Set(delivered)
    assert.deepEqual(
      acknowledged.filter((key) => !seen.has(key)),
      [],
      'acknowledged writes are missing',
    )
    assert.ok(seen.has('t/end'))
    // The watch delivered exactly the keys of etcd. A write that the client gave up may still be
    // applied when its paused member continues, after the end of this watch; hence the state at the
    // end revision, not the newest.
    const { kvs } = await writer.range({ ...under('t/'), revision: end.revision })
    assert.deepEqual(new Set(kvs.map((kv) => kv.key.toString())), seen)
    assert.ok(
      kvs.every((kv) => kv.version === 1),
      'a write was applied twice',
    )
    // Most of the time one member is down, and the machine may be busy: a count that still
    // proves something.
    assert.ok(acknowledged.length > 50, `only ${acknowledged.length} writes`)
  } finally {
    writer.close()
    reader.close()
  }
})

/**
 * The metrics of etcd about watch streams: streams opened, and messages that clients sent on them.
 */
async function watchCounts(etcd: EtcdCluster): Promise<{ streams: number; messages: number }> {
  const url = `http://127.0.0.1:${etcd.member(0).ports.metrics}/metrics`
  const text = await (await fetch(url)).text()
  const counted = (name: string) =>
    Number(new RegExp(`^${name}{grpc_method="Watch".*} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
  return {
    streams: counted('grpc_server_started_total'),
    messages: counted('grpc_server_msg_received_total'),
  }
}

const anchored = { isUnique: ({ key }: { key: Buffer }) => key.toString() === 'lag/anchor' }

describe('a watch that continues a list', () => {
  test('a member that lags behind is polled at intervals, and left when it stays behind', async () => {
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    const member = etcd.member(0)
    const copies = await mkdtemp(join(tmpdir(), 'tidings-lag-'))
    const end = new AbortController()
    try {
      const { revision } = await client.txn({ success: [put('lag/anchor')] })
      await member.stop()
      await cp(member.dataDir, copies, { recursive: true })
      await member.start()
      const connectionMax = await client.connected(end.signal)
      const watch = client.follow({
        ...under('lag/'),
        startRevision: revision,
        signal: end.signal,
        sameHistory: { ...anchored, connectionMax },
      })
      let delivered = 0
      const following = (async () => {
        for await (const batch of watch) delivered = batch.revision
      })()
      let written = 0
      for (let i = 0; i < 5; i++) {
        written = (await client.txn({ success: [put('lag/other', `${i}`)] })).revision
      }
      await eventually('all is delivered', () => delivered === written)
      // The member is restored to a state older than what was delivered.
      await member.stop()
      await rm(member.dataDir, { recursive: true })
      await cp(copies, member.dataDir, { recursive: true })
      await member.start()
      await client.connected(end.signal)
      await eventually(
        'the watch is on the member',
        async () => (await watchCounts(etcd)).messages >= 2,
      )
      const startedAt = performance.now()
      await eventually(
        'the watch leaves a member that does not catch up',
        async () => (await watchCounts(etcd)).streams >= 2,
        20_000,
      )
      await pause(1_000)
      const { streams, messages } = await watchCounts(etcd)
      const seconds = (performance.now() - startedAt) / 1000
      assert.equal(watch.verified, 0)
      assert.equal(delivered, written)
      // A create request for each stream, and a progress request every 250 ms.
      assert.ok(messages <= 12 + 4 * seconds, `${messages} messages in ${seconds} s`)
      assert.ok(streams <= 2 + seconds, `${streams} streams in ${seconds} s`)
      end.abort()
      await following
    } finally {
      end.abort()
      client.close()
      await rm(copies, { recursive: true })
    }
  })

  test('ends, without an anchor, with the connection that its history was verified on', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const client = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 5_000 })
    const end = new AbortController()
    const { signal } = end
    try {
      const connectionMax = await client.connected(signal)
      const sameHistory = { isUnique: () => false, connectionMax }
      const watch = client.follow({ ...under('none/'), startRevision: 2, signal, sameHistory })
      const following = (async () => {
        for await (const _ of watch);
      })()
      following.catch(() => {})
      await eventually('it is trusted', () => watch.verified === connectionMax)
      proxy.set('refuse')
      await eventually('the connection is lost', () => watch.verified === 0)
      proxy.set('pass')
      const timer = setTimeout(() => end.abort(), 10_000)
      await assert.rejects(
        following,
        (error) => error instanceof EtcdError && error.kind === 'compacted',
      )
      clearTimeout(timer)
    } finally {
      client.close()
    }
  })
})
