import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../lib/client-memory/ledger.ts'
import type { Response } from './exchange.ts'
import { affordable, heldBytes } from './memory-charges.ts'

const KIB = 1024
const ledgerOf = (userBytes: number): MemoryLedger =>
  new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, userBytes })

function response(status: number, bytes: number): Response {
  return { status, headers: { 'audit-id': 'a' }, body: 'x'.repeat(bytes) }
}

describe('the memory of a response', () => {
  test('a long read of a user over its limit becomes a 429 with its audit id', () => {
    using memory = ledgerOf(100 * KIB)
      .connection(() => {})
      .open(0)
    assert.equal(memory.own('ann'), undefined)
    const sent = affordable(response(200, 200 * KIB), { method: 'GET', memory })
    assert.deepEqual([sent.status, sent.headers['audit-id']], [429, 'a'])
  })

  test('a short error of a user over its limit is sent without its body', () => {
    using memory = ledgerOf(1)
      .connection(() => {})
      .open(0)
    assert.equal(memory.own('ann'), 'user')
    const sent = affordable(response(403, 300), { method: 'GET', memory })
    assert.deepEqual([sent.status, sent.body], [403, ''])
    assert.equal(
      affordable(response(201, 300), { method: 'POST', memory }).body.toString().length,
      300,
    )
  })

  test('a short error of any other client has its body', () => {
    using memory = ledgerOf(100 * KIB)
      .connection(() => {})
      .open(0)
    assert.equal(
      affordable(response(401, 300), { method: 'GET', memory }).body.toString().length,
      300,
    )
    assert.equal(memory.own('ann'), undefined)
    assert.equal(
      affordable(response(403, 300), { method: 'GET', memory }).body.toString().length,
      300,
    )
  })
})

test('a response is charged in bytes, even if it is text', () => {
  assert.equal(heldBytes('ok'), 2)
  assert.equal(heldBytes('日本'), 6)
  assert.equal(heldBytes(Buffer.from('日本')), 6)
})
