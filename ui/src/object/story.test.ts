import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAbout } from '../model/about.ts'
import { type EventRow, eventRow } from '../model/event-row.ts'
import { individualsOf, storyOf } from './story.ts'

const minuteMs = 60_000
const startMs = Date.parse('2026-11-16T12:00:00Z')

function row(
  name: string,
  minutes: number,
  { uid = '', overMinutes = 0, version = '' } = {},
): EventRow {
  const time = (ms: number): string => new Date(ms).toISOString()
  const lastMs = startMs + minutes * minuteMs
  return eventRow({
    metadata: { name, namespace: 'shop', resourceVersion: version },
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

test('is ordered by when events began, then by version', () => {
  const rows = [
    row('ended-last', 90, { overMinutes: 89 }),
    row('killed', 60),
    row('b', 5, { version: '1002' }),
    row('a', 5, { version: '10001' }),
    row('c', 5, { version: '999' }),
  ]
  assert.deepEqual(
    storyOf(rows, about).map((entry) => entry.row.name),
    ['ended-last', 'c', 'b', 'a', 'killed'],
  )
})

test('a day begins with the first event that began on it', () => {
  const day = 24 * 60
  const rows = [row('a', 0), row('b', 2 * day, { overMinutes: 2 * day - 1 }), row('c', day)]
  assert.deepEqual(
    storyOf(rows, about).map((entry) => [entry.row.name, entry.isNewDay]),
    [
      ['a', true],
      ['b', false],
      ['c', true],
    ],
  )
})

test('reports no gap while an earlier event repeats', () => {
  const rows = [row('a', 60, { overMinutes: 60 }), row('b', 10), row('c', 50), row('d', 70)]
  assert.deepEqual(
    storyOf(rows, about).map(({ gapMs }) => gapMs / minuteMs),
    [0, 0, 0, 10],
  )
})

test('reports a gap only where nothing was seen', () => {
  const rows = [row('a', 0), row('b', 60), row('c', 200, { overMinutes: 150 }), row('d', 203)]
  assert.deepEqual(
    storyOf(rows, about).map(({ gapMs }) => gapMs / minuteMs),
    [0, 50, 0, 0],
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
