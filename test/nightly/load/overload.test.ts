import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, overload, PAST_WAITING, WAITING } from '../overload/overload.ts'

/** `npm test -- overload` takes a minute for each. */
test('limits: goodput stays high at ten times the load, when all requests fit into the queue', async () => {
  const report = await overload(12_000, WAITING)
  assert.deepEqual(complaints(report), [], JSON.stringify(report))
})

test('limits: goodput stays high at ten times the load, with more requests than fit into the queue', async () => {
  // Longer: the initial rush of connections is part of it.
  const report = await overload(30_000, PAST_WAITING)
  assert.deepEqual(complaints(report), [], JSON.stringify(report))
})
