import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../lib/json.ts'
import { decodeStruct, encodeStruct } from './struct/protobuf-struct.ts'
import { eventHistogramType, eventSummaryType } from './summary-types.ts'

const VALUES_MAX = 100

test('a summary is the same in protobuf, where nothing occurred before, too', () => {
  const summary: JsonObject = {
    metadata: { name: '5f0c9c1d2b' },
    group: { workload: 'Job/import' },
    workloadRule: 'owner',
    occurrences: 412,
    before: 0,
    estimated: true,
    warnings: 0,
    events: 9,
    objects: 9,
    firstTime: '2026-11-16T11:08:40.000000Z',
    lastTime: '2026-11-16T11:59:31.482000Z',
    sampleNote: 'Back-off restarting failed container',
  }
  const encoded = encodeStruct(eventSummaryType, summary)
  assert.deepEqual(decodeStruct(eventSummaryType, encoded, VALUES_MAX), summary)
})

test('a bucket of a histogram is the same in protobuf', () => {
  const bucket: JsonObject = {
    metadata: { name: '2026-11-16t11-00-00.000z', namespace: 'shop' },
    startTime: '2026-11-16T11:00:00.000000Z',
    endTime: '2026-11-16T12:00:00.000000Z',
    counts: [
      { name: 'BackOff', occurrences: 10, events: 2, estimated: true },
      { name: 'FailedMount', occurrences: 3, events: 3 },
    ],
  }
  const encoded = encodeStruct(eventHistogramType, bucket)
  assert.deepEqual(decodeStruct(eventHistogramType, encoded, VALUES_MAX), bucket)
})
