import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyTurns } from './key-turns.ts'

test('turns: one at a time for each key, in order, each told what the one before left', async () => {
  const turns = new KeyTurns<string>()
  assert.equal(turns.enter('k'), undefined)
  const second = turns.enter('k')
  const third = turns.enter('k')
  assert.equal(turns.enter('other'), undefined)
  assert.equal(turns.waiting, 2)
  turns.leave('k', 'one')
  assert.equal(await second, 'one')
  assert.equal(turns.waiting, 1)
  turns.leave('k', undefined)
  assert.equal(await third, undefined)
  turns.leave('k', 'three')
  assert.equal(turns.enter('k'), undefined)
  assert.equal(turns.waiting, 0)
})
