import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PatchError, patchStatus } from './patch-error.ts'

test('patchStatus: gives each kind of failure its code', () => {
  const status = (error: PatchError) => patchStatus(error).status()
  const malformed = status(new PatchError('malformed', 'no list'))
  assert.deepEqual(
    [malformed.code, malformed.reason, malformed.message],
    [400, 'BadRequest', 'no list'],
  )
  assert.equal(malformed.details, undefined)

  const failed = status(new PatchError('failed', 'operation 0 (test /x): no'))
  assert.deepEqual([failed.code, failed.reason], [422, 'Invalid'])
  assert.deepEqual(failed.details, {})

  for (const kind of ['too-many-operations', 'too-large'] as const) {
    const large = status(new PatchError(kind, 'much'))
    assert.deepEqual(
      [large.code, large.reason, large.message],
      [413, 'RequestEntityTooLarge', 'Request entity too large: much'],
    )
  }
})
