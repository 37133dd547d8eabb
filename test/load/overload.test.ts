import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, overload, PAST_WAITING, WAITING } from '../overload/overload.ts'

/** `npm run test:overload` takes a minute for each. */
test('limits: ten times too much, and what can be done is done', async () => {
  const report = await overload(12_000, WAITING)
  assert.deepEqual(complaints(report), [], JSON.stringify(report))
})

test('limits: ten times too much, and more at once than can wait', async () => {
  // Longer: to take in so many at first is part of it.
  const report = await overload(30_000, PAST_WAITING)
  assert.deepEqual(complaints(report), [], JSON.stringify(report))
})
