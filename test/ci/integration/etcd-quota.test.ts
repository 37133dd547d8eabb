import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readQuota } from '../../../src/etcd/quota.ts'
import { startEtcd } from '../../support/etcd.ts'

const args = ['--quota-backend-bytes=123456789']

describe('readQuota', { concurrency: true }, () => {
  test('the quota of a member is read, with and without TLS', async () => {
    await using plain = await startEtcd({ args })
    assert.equal(await readQuota(plain.endpoints[0] ?? '', undefined), 123_456_789)
    await using encrypted = await startEtcd({ args, encrypted: true })
    const endpoint = encrypted.endpoints[0] ?? ''
    assert.equal(await readQuota(endpoint, encrypted.tls), 123_456_789)
    await assert.rejects(readQuota(endpoint, undefined))
  })

  test('a server that is not etcd is rejected', async () => {
    await assert.rejects(readQuota('http://127.0.0.1:1', undefined), /ECONNREFUSED/)
  })
})
