import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { histogramView, summaryView } from './summary-views.ts'

const nowMs = Date.UTC(2026, 10, 16, 12)

describe('the table of summaries', () => {
  const summary = {
    metadata: { name: 'x' },
    group: { namespace: 'shop', reason: 'BackOff', controller: 'kubelet' },
    occurrences: 12,
    events: 3,
    objects: 2,
    ratePerMinute: 90,
    firstTime: '2026-11-16T11:00:00.000000Z',
    lastTime: '2026-11-16T11:59:30.000000Z',
    sampleNote: ' Back-off\nrestarting  ',
  }

  test('has the grouped fields, without the namespace, which clients print', () => {
    const view = summaryView(['namespace', 'reason', 'controller'])
    assert.deepEqual(
      view.columns.map(({ name }) => name),
      ['Reason', 'Controller', 'Occurrences', 'Events', 'Objects', 'First', 'Last', 'Note'],
    )
    assert.deepEqual(view.cells(summary, nowMs), [
      'BackOff',
      'kubelet',
      12,
      3,
      2,
      '60m',
      '30s',
      'Back-off restarting',
    ])
  })

  test('has the counts before if they are compared', () => {
    const view = summaryView(['reason'], { isCompared: true })
    assert.deepEqual(
      view.columns.slice(0, 4).map(({ name }) => name),
      ['Reason', 'Occurrences', 'Before', 'Events'],
    )
    assert.deepEqual(view.cells({ ...summary, before: 1 }, nowMs).slice(0, 4), [
      'BackOff',
      12,
      1,
      3,
    ])
  })

  test('has no counts if only a rate is known, and no rate otherwise', () => {
    const view = summaryView(['user'])
    assert.deepEqual(view.cells({ group: { user: 'ada' }, ratePerMinute: 0 }, nowMs), [
      'ada',
      null,
      null,
      null,
      '0/min',
      '',
      '',
      '',
    ])
    const { ratePerMinute: _rate, ...withoutRate } = summary
    assert.equal(summaryView(['type']).cells(withoutRate, nowMs)[4], '')
  })
})

test('the table of a histogram has the counts of each bucket', () => {
  const bucket = {
    metadata: { name: 'x' },
    startTime: '2026-11-16T11:00:00.000000Z',
    endTime: '2026-11-16T11:00:00.250000Z',
    counts: [
      { name: 'Normal', occurrences: 10, events: 2 },
      { name: 'Warning', occurrences: 3, events: 3 },
    ],
  }
  assert.deepEqual(histogramView.cells(bucket, nowMs), [
    '2026-11-16T11:00:00Z',
    '2026-11-16T11:00:00.25Z',
    13,
    'Normal=10 Warning=3',
  ])
  assert.deepEqual(histogramView.cells({ ...bucket, counts: [] }, nowMs).slice(2), [0, ''])
})
