import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMembers } from './open-members.ts'

const clock = { now: () => 0 }

test('an endpoint that cannot be connected to is invalid', () => {
  for (const endpoint of [
    'etcd',
    'ftp://etcd:2379',
    'etcd:',
    'etcd:65536',
    'https://etcd:99999/',
  ]) {
    assert.throws(() => openMembers({ endpoints: [endpoint], tls: undefined, clock }), {
      kind: 'invalid',
      message: `not an etcd endpoint: ${endpoint}`,
    })
  }
  openMembers({ endpoints: ['127.0.0.1:65535'], tls: undefined, clock }).close()
})
