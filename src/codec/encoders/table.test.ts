import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../lib/json.ts'
import { ageText, eventCells, eventColumns } from './table.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

describe('ageText', () => {
  for (const [ms, text] of [
    [-2 * second, '<invalid>'],
    [-1999, '0s'],
    [-1, '0s'],
    [0, '0s'],
    [999, '0s'],
    [119_999, '119s'],
    [2 * minute, '2m'],
    [2 * minute + 5 * second, '2m5s'],
    [10 * minute - second, '9m59s'],
    [10 * minute + 5 * second, '10m'],
    [3 * hour - minute, '179m'],
    [3 * hour, '3h'],
    [3 * hour + minute, '3h1m'],
    [8 * hour - minute, '7h59m'],
    [8 * hour + minute, '8h'],
    [47 * hour, '47h'],
    [2 * day, '2d'],
    [2 * day + hour, '2d1h'],
    [8 * day - hour, '7d23h'],
    [8 * day, '8d'],
    [2 * year - day, '729d'],
    [2 * year, '2y'],
    [2 * year + day, '2y1d'],
    [8 * year - day, '7y364d'],
    [8 * year + day, '8y'],
  ] as const) {
    it(`an age of ${ms} ms is printed as ${text}`, () => {
      assert.equal(ageText(ms), text)
    })
  }
})

describe('eventCells', () => {
  const now = Date.parse('2026-01-02T04:04:05.678Z')
  const full: JsonObject = {
    metadata: { name: 'full' },
    eventTime: '2026-01-02T03:04:05.678901Z',
    series: { count: 3, lastObservedTime: '2026-01-02T04:02:05.000001Z' },
    reportingController: 'example.com/scheduler',
    reportingInstance: 'scheduler-0',
    reason: 'Scheduled',
    regarding: { kind: 'Pod', name: 'web-0', fieldPath: 'spec.containers{app}' },
    note: ' Successfully assigned web-0 to node-1\n',
    type: 'Normal',
    deprecatedSource: {},
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
  }

  function cellsOf(changes: JsonObject): Record<string, unknown> {
    const { series: _, ...single } = full
    const cells = eventCells({ ...single, ...changes }, now)
    return Object.fromEntries(eventColumns.map(({ name }, index) => [name, cells[index]]))
  }

  it('white space as Go defines it is trimmed from a note', () => {
    const { Message: message } = cellsOf({ note: '\u0085\u3000\t a\ufeff \u00a0' })
    assert.equal(message, 'a\ufeff')
  })

  it('an event has one cell for each column', () => {
    assert.deepEqual(eventCells(full, now), [
      '2m',
      'Normal',
      'Scheduled',
      'pod/web-0',
      'spec.containers{app}',
      'example.com/scheduler, scheduler-0',
      3,
      'Successfully assigned web-0 to node-1',
      '60m',
      'full',
    ])
  })

  it('the columns that are not only for wide output have the count, and end with the message', () => {
    assert.deepEqual(
      eventColumns.filter(({ priority }) => priority === 0).map(({ name }) => name),
      ['Last Seen', 'Type', 'Reason', 'Object', 'Count', 'Message'],
    )
  })

  it('an event that happened once has equal first and last times', () => {
    const cells = cellsOf({})
    assert.deepEqual([cells['Last Seen'], cells['First Seen'], cells['Count']], ['60m', '60m', 1])
  })

  it('deprecated times, counts and sources are used where they are set', () => {
    const cells = cellsOf({
      deprecatedFirstTimestamp: '2026-01-02T00:04:05Z',
      deprecatedLastTimestamp: '2026-01-02T04:04:00Z',
      deprecatedCount: 7,
      deprecatedSource: { component: 'kubelet', host: 'node-1' },
    })
    assert.deepEqual(
      [cells['Last Seen'], cells['First Seen'], cells['Count'], cells['Source']],
      ['5s', '4h', 7, 'kubelet, node-1'],
    )
  })

  it('the time and count of a series take precedence', () => {
    const cells = cellsOf({
      deprecatedLastTimestamp: '2026-01-02T04:04:00Z',
      deprecatedCount: 7,
      series: { count: 0, lastObservedTime: null },
    })
    assert.deepEqual([cells['Last Seen'], cells['Count']], ['<unknown>', 0])
  })

  it('an empty event has all cells', () => {
    const blank = eventCells({ metadata: {}, eventTime: null, regarding: {} }, now)
    assert.deepEqual(blank, ['<unknown>', '', '', '', '', '', 1, '', '<unknown>', ''])
  })

  it('an object without a name is printed as its kind, a source without an instance as its controller', () => {
    const cells = cellsOf({ regarding: { kind: 'NodePool' }, reportingInstance: '' })
    assert.deepEqual([cells['Object'], cells['Source']], ['nodepool', 'example.com/scheduler'])
  })
})
