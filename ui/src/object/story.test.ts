import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAbout } from '../model/about.ts'
import { type EventRow, eventRow } from '../model/event-row.ts'
import { individualsOf, storyOf } from './story.ts'

const minuteMs = 60_000
const startMs = Date.parse('2026-11-16T12:00:00Z')

function row(name: string, minutes: number, { uid = '', overMinutes = 0 } = {}): EventRow {
  const time = (ms: number): string => new Date(ms).toISOString()
  const lastMs = startMs + minutes * minuteMs
  return eventRow({
    metadata: { name, namespace: 'shop' },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid },
    firstTimestamp: time(lastMs - overMinutes * minuteMs),
    lastTimestamp: time(lastMs),
  })
}

const about = readAbout('Pod/shop/web-0')

test('starts with the oldest event, and contains each once', () => {
  const story = storyOf([row('b', 5), row('a', 1), row('b', 5)], about)
  assert.deepEqual(
    story.map(({ row: { name }, isNewDay }) => [name, isNewDay]),
    [
      ['a', true],
      ['b', false],
    ],
  )
})

test('reports a gap only where nothing was seen', () => {
  const rows = [row('a', 0), row('b', 60), row('c', 200, { overMinutes: 150 }), row('d', 203)]
  assert.deepEqual(
    storyOf(rows, about).map(({ gapMs }) => gapMs / minuteMs),
    [0, 60, 0, 0],
  )
})

test('distinguishes objects of the same name by uid', () => {
  const rows = [
    ...[row('a', 0, { uid: '1' }), row('b', 1), row('c', 2, { uid: '2' })],
    ...[row('d', 3, { uid: '1' }), row('e', 4, { uid: '1' })],
  ]
  const story = storyOf(rows, about)
  assert.deepEqual(
    story.map(({ otherUid }) => otherUid),
    ['', '', '2', '1', ''],
  )
  assert.deepEqual(
    individualsOf(story).map(({ uid, events }) => [uid, events]),
    [
      ['1', 3],
      ['2', 1],
    ],
  )
})

test('omits events that mention only another object', () => {
  assert.deepEqual(storyOf([row('a', 0)], readAbout('Pod/other/web-0')), [])
})
