import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readQuota } from '../../../src/etcd/quota.ts'
import { startEtcd } from '../../support/etcd.ts'

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
