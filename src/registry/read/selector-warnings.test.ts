import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selectorWarnings } from './selector-warnings.ts'

test('selectors that can hardly match anything have a warning', () => {
  assert.deepEqual(selectorWarnings(undefined), [])
  assert.deepEqual(selectorWarnings({ type: 'Warning', sinceMs: 1, untilMs: 2 }), [])
  assert.deepEqual(selectorWarnings({ type: 'warning' }), [
    'type=warning: the types of events are Normal and Warning',
  ])
  assert.match(selectorWarnings({ sinceMs: 2, untilMs: 2 }).join(), /^since is not before until/)
})
