import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readQuota } from '../../../src/etcd/member-http.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { Datastore } from '../../../src/storage/etcd/datastore.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { etcdctl, fillUp, startSmallEtcd } from '../../support/full-etcd.ts'

const { signal } = new AbortController()
const args = ['--quota-backend-bytes=123456789']

describe('readQuota', { concurrency: true }, () => {
  test('the quota of a member is read, with and without TLS', async () => {
    await using plain = await startEtcd({ args })
    assert.equal(await readQuota(plain.endpoints[0] ?? '', { tls: undefined, signal }), 123_456_789)
    await using encrypted = await startEtcd({ args, encrypted: true })
    const endpoint = encrypted.endpoints[0] ?? ''
    assert.equal(await readQuota(endpoint, { tls: encrypted.tls, signal }), 123_456_789)
    await assert.rejects(readQuota(endpoint, { tls: undefined, signal }))
  })

  test('a member without a quota has one below 0', async () => {
    await using etcd = await startEtcd({ args: ['--quota-backend-bytes=-1'] })
    assert.equal(await readQuota(etcd.endpoints[0] ?? '', { tls: undefined, signal }), -1)
  })

  test('an abort ends a read that a paused member does not answer', async () => {
    await using etcd = await startEtcd({ args })
    etcd.member(0).pause()
    const ending = new AbortController()
    const reading = readQuota(etcd.endpoints[0] ?? '', { tls: undefined, signal: ending.signal })
    const askedAt = performance.now()
    setTimeout(() => ending.abort(), 100)
    await assert.rejects(reading, { name: 'AbortError' })
    assert.ok(performance.now() - askedAt < 2000)
  })

  test('a server that is not etcd is rejected', async () => {
    await assert.rejects(
      readQuota('http://127.0.0.1:1', { tls: undefined, signal }),
      /ECONNREFUSED/,
    )
  })
})

describe('the quota of a datastore', () => {
  test('a full etcd that is restarted with a larger quota has room within 30 s', async () => {
    await using etcd = await startSmallEtcd()
    const datastore = new Datastore({
      servers: etcd.endpoints,
      prefix: '/tidings',
      healthTimeoutMs: 2000,
      log: silentLog,
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
    })
    const client = await datastore.open()
    const { quotaAlarm } = datastore
    try {
      await fillUp(client)
      await eventually('the alarm is known', () => quotaAlarm.isFull)
      await eventually('its space is known', () => (quotaAlarm.usedFraction ?? 0) > 0.8)

      const member = etcd.member(0)
      await member.stop()
      const args = ['--unsafe-no-fsync', '--quota-backend-bytes=1073741824']
      // It is not healthy before the alarm is disarmed.
      const starting = member.start({ args })
      const isDisarmed = () =>
        etcdctl(etcd, 'alarm disarm').then(
          () => true,
          () => false,
        )
      await eventually('the alarm is disarmed', isDisarmed, 20_000)
      await starting
      const hasRoom = () => !quotaAlarm.isFull && quotaAlarm.writeFraction === 1
      await eventually('writers have room', hasRoom, 30_000)
    } finally {
      datastore.close()
    }
  })
})
