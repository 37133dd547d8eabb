import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isGoodEtcdVersion } from './datastore.ts'

test('isGoodEtcdVersion accepts 3.5.28, 3.6.9 and later releases', () => {
  for (const version of ['3.5.28', '3.5.30', '3.5.100', '3.6.9', '3.6.10', '3.7.0', '4.0.0']) {
    assert.equal(isGoodEtcdVersion(version), true, version)
  }
  for (const version of [
    '3.5.27',
    '3.5.9',
    '3.4.100',
    '3.6.0',
    '3.6.8',
    '2.9.99',
    '3.5',
    '',
    'unknown',
  ]) {
    assert.equal(isGoodEtcdVersion(version), false, version)
  }
})
