import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isControlValue, replicaName } from './control-values.ts'

describe('values of control keys', () => {
  test('what a replica writes is recognised, whatever its host is called', () => {
    for (const host of ['vm', 'tidings-7f9c.example.org', '', 'two words', 'a/b', 'Jürgen"s']) {
      const replica = replicaName(host, 42)
      assert.ok(isControlValue('sweeper', Buffer.from(`${replica} --event-ttl=1h0m0s`)), host)
      assert.ok(isControlValue('mirror-leaders/a', Buffer.from(replica)), host)
      const record = JSON.stringify({ replica, notes: [] })
      assert.ok(isControlValue('ages', Buffer.from(record)), host)
      assert.ok(isControlValue('unknown', Buffer.from(record)), host)
    }
  })

  test('the name of a replica is its host and its process', () => {
    assert.equal(replicaName('vm', 12925), 'vm/12925')
  })
})
