import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MirrorCounters } from './mirror-counters.ts'

test('counts drops and truncated events from zero, so that the first is an increase', () => {
  const counters = new MirrorCounters()
  assert.deepEqual(counters.results, {
    'too-large': 0,
    invalid: 0,
    unreadable: 0,
    truncated: 0,
  })
  counters.count('invalid')
  assert.equal(counters.results.invalid, 1)
})

test('has only reasons for which events were dropped in the record', () => {
  const counters = new MirrorCounters()
  counters.count('stored')
  assert.deepEqual(counters.dropped, {})
  counters.count('too-large')
  assert.deepEqual(counters.dropped, { 'too-large': 1 })
})

test('has a notice for truncated events only', () => {
  const counters = new MirrorCounters()
  counters.count('stored')
  assert.equal(counters.notice, '')
  counters.count('truncated')
  assert.equal(counters.notice, '1 event was truncated to --max-event-bytes')
  counters.count('truncated')
  assert.equal(counters.notice, '2 events were truncated to --max-event-bytes')
})
