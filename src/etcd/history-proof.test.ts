import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HistoryProof } from './history-proof.ts'
import type { WatchEvent } from './protocol/protocol.ts'

function put(revision: number, key: string, value: string): WatchEvent {
  const kv = {
    key: Buffer.from(key),
    value: Buffer.from(value),
    createRevision: 1,
    modRevision: revision,
    version: 1,
    lease: 0n,
  }
  return { type: 'put', kv, prevKv: undefined }
}

function removal(revision: number, key: string): WatchEvent {
  const { kv } = put(revision, key, '')
  return { type: 'delete', kv, prevKv: undefined }
}

/** Values that end in `!` are unique. */
const isUnique = ({ value }: { readonly value: Buffer }) => value.toString().endsWith('!')

/** Whether a stream that sends `again` continues what was delivered, batch by batch. */
function isContinued(
  delivered: readonly (readonly WatchEvent[])[],
  again: readonly WatchEvent[],
): boolean {
  const proof = new HistoryProof(isUnique)
  for (const events of delivered) proof.note(events)
  proof.begin()
  assert.equal(proof.isOpen, true)
  for (const event of again) proof.repeat(event)
  try {
    proof.conclude()
  } catch (error) {
    assert.ok(error instanceof Error && 'kind' in error && error.kind === 'other-history')
    return false
  }
  assert.equal(proof.isOpen, false)
  return true
}

const a = put(5, 'a', 'one!')
const b = put(6, 'b', 'two!')

test('a new stream must start at the newest unique put', () => {
  const proof = new HistoryProof(isUnique)
  assert.equal(proof.revision, undefined)
  proof.note([put(3, 'x', 'like any other')])
  proof.begin()
  assert.deepEqual([proof.revision, proof.isOpen], [undefined, false])
  proof.note([a, b, removal(7, 'a'), put(8, 'x', 'like any other')])
  assert.equal(proof.revision, 6)
  proof.note([removal(9, 'b')])
  assert.equal(proof.revision, 6)
})

test('the same changes are the same history, regardless of batch boundaries', () => {
  const tail = [removal(7, 'a'), removal(8, 'b')]
  assert.equal(isContinued([[a, b]], [b]), true)
  assert.equal(isContinued([[a], [b], tail], [b, ...tail]), true)
  assert.equal(isContinued([[a, b, ...tail]], [b, ...tail]), true)
})

test('other changes in the revision of the anchor do not matter', () => {
  const other = removal(6, 'c')
  assert.equal(isContinued([[a, b, other]], [removal(6, 'a'), b, other]), true)
})

test('a different, missing or additional change is another history', () => {
  const delivered = [[a, b, removal(7, 'a'), removal(9, 'c')]]
  for (const again of [
    [],
    [b],
    [b, removal(7, 'a')],
    [b, removal(8, 'a'), removal(9, 'c')],
    [b, removal(7, 'b'), removal(9, 'c')],
    [b, removal(7, 'a'), removal(8, 'x'), removal(9, 'c')],
    [b, removal(7, 'a'), put(9, 'c', '')],
    [put(6, 'b', 'other!'), removal(7, 'a'), removal(9, 'c')],
    [put(6, 'd', 'two!'), removal(7, 'a'), removal(9, 'c')],
  ]) {
    assert.equal(isContinued(delivered, again), false)
  }
})
