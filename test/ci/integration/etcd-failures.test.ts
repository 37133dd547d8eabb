import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { EtcdClient, prefixEnd, type TxnOp } from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import { watchMethod } from '../../../src/etcd/methods.ts'
import { encodeWatchCreate } from '../../../src/etcd/protocol/control-messages.ts'
import { Session } from '../../../src/grpc/session.ts'
import { pause } from '../../../src/lib/abort.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'

const bytes = (text: string) => Buffer.from(text)
const key = bytes('k')
const put = (name: string): TxnOp => ({ type: 'put', key: bytes(name), value: bytes('v') })

function failed(promise: Promise<unknown>): Promise<EtcdError> {
  return promise.then(
    () => assert.fail('it should have failed'),
    (error: unknown) => {
      assert.ok(error instanceof EtcdError, String(error))
      return error
    },
  )
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 15_000
  while (!holds()) {
    if (performance.now() > deadline) assert.fail(`not within 15 s: ${what}`)
    await pause(20)
  }
}

const areReady = (client: EtcdClient) =>
  client.endpoints().every((endpoint) => endpoint.state === 'ready')

async function timed<T>(promise: Promise<T>): Promise<{ result: T; ms: number }> {
  const begun = performance.now()
  const result = await promise
  return { result, ms: performance.now() - begun }
}

describe('an etcd client of one member that fails', { concurrency: true }, () => {
  test('etcd does not close a connection for its pings, however often they are asked for', async () => {
    await using etcd = await startEtcd()
    const [host = '', port] = new URL(etcd.endpoints[0] ?? '').host.split(':')
    const ready = Promise.withResolvers<void>()
    let hasEnded = false
    const session = new Session({
      target: { host, port: Number(port) },
      onReady: ready.resolve,
      onEnd: () => {
        hasEnded = true
      },
    })
    try {
      await ready.promise
      const watch = session.duplex(watchMethod)
      watch.on('error', () => {})
      watch.write(encodeWatchCreate({ key, startRevision: 1, fragment: true }))
      await once(watch, 'readable')
      const startedAt = performance.now()
      // etcd closes a connection at the third ping that comes too early: here the fourth of all.
      while (performance.now() < startedAt + 18_000) {
        session.ping()
        await pause(100)
        const seconds = Math.round((performance.now() - startedAt) / 1000)
        assert.equal(hasEnded, false, `the connection was closed after ${seconds} s`)
      }
    } finally {
      session.destroy()
    }
  })

  test('every call to a paused member ends at its own deadline, neither earlier nor later', async () => {
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 3_000 })
    try {
      const { revision } = await client.txn({ success: [put('deadline')] })
      etcd.member(0).pause()
      const [read, write, byDefault] = await Promise.all([
        timed(failed(client.range({ key }, { timeoutMs: 400 }))),
        timed(failed(client.txn({ success: [put('deadline')] }, { timeoutMs: 900 }))),
        timed(failed(client.compact(revision))),
      ])
      assert.deepEqual([read.result.kind, read.result.mayHaveBeenApplied], ['timeout', false])
      assert.deepEqual([write.result.kind, write.result.mayHaveBeenApplied], ['timeout', true])
      assert.deepEqual(
        [byDefault.result.kind, byDefault.result.mayHaveBeenApplied],
        ['timeout', true],
      )
      for (const [{ ms }, wanted] of [
        [read, 400],
        [write, 900],
        [byDefault, 3_000],
      ] as const) {
        // Node counts a timer from the start of the event loop's iteration, some milliseconds ago.
        assert.ok(ms >= wanted - 50 && ms < wanted + 400, `${wanted} ms became ${ms}`)
      }
      assert.equal(client.overdueMs(), 0)
      etcd.member(0).resume()
      await client.range({ key })
    } finally {
      client.close()
    }
  })

  test('a write whose reply was cut is reported as maybe applied, and is never repeated', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const direct = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 3_000 })
    const client = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 3_000 })
    try {
      const rounds = 30
      for (let round = 0; round < rounds; round++) {
        await client.range({ key })
        proxy.set('cut-replies')
        const error = await failed(client.txn({ success: [put(`once/${round}`)] }))
        proxy.set('pass')
        assert.deepEqual([error.kind, error.mayHaveBeenApplied], ['unavailable', true])
      }
      assert.ok(proxy.cutCount >= rounds)
      const { kvs } = await direct.range({
        key: bytes('once/'),
        rangeEnd: prefixEnd(bytes('once/')),
      })
      assert.ok(
        kvs.every((kv) => kv.version === 1),
        'a write was applied twice',
      )
      assert.ok(kvs.length > rounds / 2, 'the requests were cut, not the replies')
    } finally {
      direct.close()
      client.close()
    }
  })

  test('a call on a refused connection is reported as not sent, and calls succeed afterwards', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    proxy.set('refuse')
    const client = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 600 })
    const unreachable = new EtcdClient({ endpoints: ['127.0.0.1:1'], defaultTimeoutMs: 600 })
    try {
      const [refused, read, absent] = await Promise.all([
        timed(failed(client.txn({ success: [put('refused')] }))),
        timed(failed(client.range({ key }))),
        timed(failed(unreachable.txn({ success: [put('refused')] }))),
      ])
      for (const { result, ms } of [refused, read, absent]) {
        assert.deepEqual([result.kind, result.mayHaveBeenApplied], ['unavailable', false])
        assert.ok(ms < 1_100, `it took ${ms} ms`)
      }
      assert.match(absent.result.message, /ECONNREFUSED/)
      assert.notEqual(unreachable.endpoints()[0]?.state, 'ready')
      assert.match(unreachable.endpoints()[0]?.lastError?.message ?? '', /ECONNREFUSED/)
      const waiting = client.txn({ success: [put('later')] }, { timeoutMs: 10_000 })
      proxy.set('pass')
      await waiting
      const { kvs } = await client.range({ key: bytes('a'), rangeEnd: bytes('z') })
      assert.deepEqual(
        kvs.map((kv) => [kv.key.toString(), kv.version]),
        [['later', 1]],
      )
    } finally {
      client.close()
      unreachable.close()
    }
  })

  test('a blackholed connection is closed, and the next one works', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const client = new EtcdClient({ endpoints: [proxy.address], defaultTimeoutMs: 500 })
    try {
      await client.range({ key })
      proxy.set('blackhole')
      assert.equal((await failed(client.range({ key }))).kind, 'timeout')
      await until('the connection is no longer reported as ready', () => {
        client.range({ key }).catch(() => {})
        return client.endpoints()[0]?.state !== 'ready'
      })
      proxy.set('pass')
      await client.range({ key }, { timeoutMs: 10_000 })
    } finally {
      client.close()
    }
  })

  test('connections to a server that accepts and never responds do not accumulate', async () => {
    const sockets = new Set<Socket>()
    let opened = 0
    const server = createServer((socket) => {
      sockets.add(socket)
      opened += 1
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      socket.resume()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { cert: ca } = await CertificateAuthority.create()
    const clients = [undefined, { ca }].map((tls) => {
      return new EtcdClient({ endpoints: [`127.0.0.1:${port}`], tls, defaultTimeoutMs: 500 })
    })
    try {
      // Long enough for the client to close its connection once and open another.
      await pause(4_000)
      for (const client of clients) {
        const error = await failed(client.txn({ success: [put('never')] }))
        assert.deepEqual([error.kind, error.mayHaveBeenApplied], ['unavailable', false])
        assert.match(error.message, /does not respond/)
      }
      // Two for each client. The server may see a new one before the end of the old one.
      await until('only the last connections are left', () => sockets.size <= 4)
      assert.ok(opened > 4, `${opened} connections: no one was replaced`)
    } finally {
      for (const client of clients) client.close()
    }
    await until('every connection is closed', () => sockets.size === 0)
    server.close()
  })

  test('a member that was killed is used again after its restart', async () => {
    await using etcd = await startEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 1_000 })
    try {
      await client.txn({ success: [put('kept')] })
      await etcd.member(0).kill()
      assert.equal((await failed(client.range({ key }))).kind, 'unavailable')
      await etcd.member(0).start()
      assert.equal((await client.range({ key: bytes('kept') }, { timeoutMs: 5_000 })).count, 1)
      await etcd.member(0).stop()
      await etcd.member(0).start()
      await client.txn({ success: [put('kept')] }, { timeoutMs: 5_000 })
    } finally {
      client.close()
    }
  })

  test('a closed client does not keep its process alive', async () => {
    await using etcd = await startEtcd()
    const { spawn } = await import('node:child_process')
    const script = `
      import { EtcdClient } from ${JSON.stringify(new URL('../../../src/etcd/client.ts', import.meta.url).href)}
      const client = new EtcdClient({ endpoints: [process.argv[1], '127.0.0.1:1'], defaultTimeoutMs: 60000 })
      const key = Buffer.from('k')
      await client.range({ key })
      const watching = (async () => {
        const { signal } = new AbortController()
        for await (const batch of client.watch({ key, startRevision: 1, signal })) client.close()
      })()
      await watching.catch(() => {})
      process.stdout.write('closed')
    `
    const child = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      script,
      etcd.endpoints[0] ?? '',
    ])
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    const kill = setTimeout(() => child.kill('SIGKILL'), 12_000)
    // Not at its exit, when output may still be on its way.
    const code = await new Promise((resolve) => child.once('close', resolve))
    clearTimeout(kill)
    assert.deepEqual([code, output], [0, 'closed'])
  })
})

test('three members survive the kill or pause of any one: no read fails, and few writes do', async () => {
  await using etcd = await startEtcdCluster(3)
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 1_900 })
  try {
    await until('all members are connected', () => areReady(client))
    let isRunning = true
    const reads = { count: 0, slowestMs: 0, errors: [] as EtcdError[] }
    const reading = (async () => {
      while (isRunning) {
        const begun = performance.now()
        await client.range({ key }).catch((error: EtcdError) => reads.errors.push(error))
        reads.slowestMs = Math.max(reads.slowestMs, performance.now() - begun)
        reads.count++
        await pause(20)
      }
    })()
    const writes = { count: 0, unknown: 0, refused: 0, gapMs: 0 }
    const writing = (async () => {
      let lastSuccess = performance.now()
      while (isRunning) {
        const name = `w/${writes.count++}`
        try {
          await client.txn({ success: [put(name)] })
          writes.gapMs = Math.max(writes.gapMs, performance.now() - lastSuccess)
          lastSuccess = performance.now()
        } catch (error) {
          if (error instanceof EtcdError && error.mayHaveBeenApplied) writes.unknown++
          else writes.refused++
        }
        await pause(20)
      }
    })()

    const leader = async () => {
      const all = await Promise.all(etcd.endpoints.map((endpoint) => client.status(endpoint)))
      return all.findIndex((status) => status.memberId === status.leader)
    }
    const follower = ((await leader()) + 1) % 3
    etcd.member(follower).pause()
    await pause(2_500)
    etcd.member(follower).resume()
    await pause(500)
    await etcd.member(follower).kill()
    await pause(500)
    await etcd.member(follower).start()
    await until('the killed member is back', () => areReady(client))
    await pause(500)
    isRunning = false
    await Promise.all([reading, writing])

    assert.deepEqual(reads.errors.map(String), [])
    assert.ok(reads.slowestMs < 1_900, `the slowest read took ${reads.slowestMs} ms`)
    assert.ok(writes.unknown + writes.refused <= 3, JSON.stringify(writes))
    assert.ok(writes.gapMs < 4_000, JSON.stringify(writes))
    const { kvs } = await client.range({ key: bytes('w/'), rangeEnd: prefixEnd(bytes('w/')) })
    assert.ok(kvs.every((kv) => kv.version === 1))

    // The leader is killed: writes succeed again within four seconds, without help.
    await etcd.member(await leader()).kill()
    const { ms } = await timed(
      (async () => {
        for (;;) {
          const done = await client.txn({ success: [put('after')] }).catch(() => undefined)
          if (done !== undefined) return
        }
      })(),
    )
    assert.ok(ms < 4_000, `no write for ${ms} ms`)

    // Two of three are down: calls fail in bounded time, and succeed when one is back.
    const other = etcd.members.findIndex((member) => member.isRunning)
    await etcd.member(other).kill()
    const lost = await timed(failed(client.range({ key }, { timeoutMs: 1_500 })))
    assert.ok(['timeout', 'unavailable'].includes(lost.result.kind), lost.result.kind)
    assert.ok(lost.ms < 1_900, `it took ${lost.ms} ms`)
    await etcd.member(other).start()
    await client.range({ key }, { timeoutMs: 5_000 })
  } finally {
    client.close()
  }
})
