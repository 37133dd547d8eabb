import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectBytes } from './collect-bytes.ts'

async function* chunks(onEnd: () => void): AsyncGenerator<Buffer, void, undefined> {
  try {
    for (const text of ['ab', '', 'cd', 'ef']) yield Buffer.from(text)
  } finally {
    onEnd()
  }
}

test('collects bytes up to the limit and ends a longer source immediately', async () => {
  let ended = 0
  const source = (): AsyncIterable<Buffer> => chunks(() => ended++)
  assert.equal(String(await collectBytes(source(), 6)), 'abcdef')
  assert.equal(await collectBytes(source(), 5), 'too-long')
  assert.equal(await collectBytes(source(), 1), 'too-long')
  assert.equal(ended, 3)
})
