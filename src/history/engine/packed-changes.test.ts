import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { packChanges, unpackChanges } from './packed-changes.ts'
import type { ArchivedChange } from './protocol.ts'

const key = { cluster: 'local', namespace: 'shop 🦆', name: 'web-0.1' }
const state = { body: Buffer.from('{"metadata":{}}'), trailer: Buffer.from([0, 255]) }
const written = { version: 9_007_199_254_740_991, writtenAtMs: 1_780_000_000_123 }

test('changes are the same after they were sent', () => {
  const changes: readonly ArchivedChange[] = [
    { key, ...state, ...written, previous: undefined },
    { key, ...state, ...written, trailer: Buffer.alloc(0), previous: state },
    { key, ...state, ...written, previous: { body: Buffer.from('x'), trailer: Buffer.alloc(0) } },
    { key, ...state, ...written, previous: { unknownBeforeMs: 0 } },
    { key: { ...key, name: '' }, ...state, ...written, version: 0, previous: undefined },
  ]
  assert.deepEqual([...unpackChanges(deserialize(serialize(packChanges(changes))))], changes)
  assert.deepEqual([...unpackChanges(deserialize(serialize(packChanges([]))))], [])
})
