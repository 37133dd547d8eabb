import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, overload } from '../overload/overload.ts'

/** `npm run test:overload` takes a minute. */
const MS = 12_000

test('limits: ten times too much, and what can be done is done', async () => {
  const report = await overload(MS)
  assert.deepEqual(complaints(report), [], JSON.stringify(report))
})
