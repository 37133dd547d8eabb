import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'

const key = Buffer.from('/renewed')

describe('credentials for etcd that are renewed while the client runs', () => {
  test('no call fails and no change is lost while all connections are replaced', async () => {
    await using etcd = await startEtcdCluster(3, { encrypted: true })
    const { tls } = etcd
    assert.ok(tls)
    const client = new EtcdClient({ endpoints: etcd.endpoints, tls, defaultTimeoutMs: 10_000 })
    const end = new AbortController()
    const seen: number[] = []
    const watching = (async () => {
      for await (const { events } of client.watch({ key, startRevision: 1, signal: end.signal })) {
        for (const { kv } of events) seen.push(Number(kv.value.toString()))
      }
    })()
    let isDone = false
    let written = 0
    const writing = (async () => {
      while (!isDone) {
        const value = Buffer.from(String(written + 1))
        await client.txn({ success: [{ type: 'put', key, value }] })
        written += 1
      }
    })()
    const reading = (async () => {
      while (!isDone) await client.range({ key })
    })()
    // Five times, so that the oldest connections are closed and the watch has to move off them.
    for (let round = 0; round < 5; round++) {
      await sleep(300)
      client.renewCredentials(tls)
    }
    await sleep(500)
    isDone = true
    await Promise.all([writing, reading])
    await eventually('all changes are seen', () => seen.at(-1) === written)
    end.abort()
    await watching
    assert.deepEqual(
      seen,
      Array.from({ length: written }, (_, index) => index + 1),
    )
    client.close()
  })

  test('a watch moves off a connection with replaced credentials when that connection is closed', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const { tls } = etcd
    assert.ok(tls)
    const client = new EtcdClient({ endpoints: etcd.endpoints, tls, defaultTimeoutMs: 10_000 })
    const end = new AbortController()
    const { signal } = end
    const { revision } = await client.txn({ success: [{ type: 'put', key, value: key }] })
    const sameHistory = { isUnique: () => true, connectionMax: await client.connected(signal) }
    const watch = client.follow({ key, startRevision: revision, signal, sameHistory })
    let hasPut = false
    const watching = (async () => {
      for await (const { events } of watch) hasPut ||= events.length > 0
    })()
    // Without a put there is no key by which the watch could recognise the history after a
    // break.
    await eventually(
      'the watch is verified, and has delivered the put',
      () => hasPut && watch.verified > 0,
    )
    const before = watch.verified
    for (let round = 0; round < 5; round++) {
      const newest = client.newestConnection
      client.renewCredentials(tls)
      await eventually('two more connections', () => client.newestConnection >= newest + 2)
    }
    await eventually('a later stream is verified', () => watch.verified > before)
    end.abort()
    await watching
    client.close()
  })

  test('credentials that etcd rejects leave the old connection in use, and the error is reported', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const { tls } = etcd
    assert.ok(tls)
    const client = new EtcdClient({ endpoints: etcd.endpoints, tls, defaultTimeoutMs: 5000 })
    await client.range({ key })
    const other = await (await CertificateAuthority.create('other')).issueClient('tidings')
    client.renewCredentials({ ca: tls.ca, ...other })
    const status = () => client.endpoints()[0]
    await eventually('the rejection is reported', () =>
      /TLS: .*alert/.test(status()?.renewalError?.message ?? ''),
    )
    await client.range({ key })
    assert.equal(status()?.state, 'ready')
    // No connection is left once the member is down; the reported error is then the latest one.
    await etcd.member(0).kill()
    await eventually('the member is down', () =>
      /ECONNREFUSED/.test(status()?.lastError?.message ?? ''),
    )
    await etcd.member(0).start()
    await eventually('it refuses us', () => /TLS: /.test(status()?.lastError?.message ?? ''))
    await etcd.member(0).kill()
    await eventually('the member is down again', () =>
      /ECONNREFUSED/.test(status()?.lastError?.message ?? ''),
    )
    await etcd.member(0).start()
    client.renewCredentials(tls)
    await client.range({ key })
    assert.equal(status()?.lastError, undefined)
    client.close()
  })

  test('a certificate that does not match its key changes nothing', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const { tls } = etcd
    assert.ok(tls)
    const client = new EtcdClient({ endpoints: etcd.endpoints, tls, defaultTimeoutMs: 5000 })
    const other = await (await CertificateAuthority.create('other')).issueClient('tidings')
    assert.throws(() => client.renewCredentials({ ...tls, cert: other.cert }), {
      message: 'the certificates for etcd cannot be used',
    })
    await client.range({ key })
    client.close()
  })
})
