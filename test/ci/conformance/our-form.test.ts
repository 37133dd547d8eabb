import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../../src/lib/json.ts'
import { withCounts } from './our-form.ts'

const names = 'abcdef'.split('')
const columnsOf = (...last: [string, number][]): Json =>
  [...names.map((name): [string, number] => [name, 0]), ...last].map(([name, priority]) => ({
    name,
    priority,
  }))
const table = (columnDefinitions: Json, ...cells: Json[][]): Json => ({
  kind: 'Table',
  columnDefinitions,
  rows: cells.map((each) => ({ cells: each, object: null })),
})
const recorded = columnsOf(['Message', 0], ['First Seen', 1], ['Count', 1], ['Name', 1])
const ours = columnsOf(['Count', 0], ['Message', 0], ['First Seen', 1], ['Name', 1])

test('the count of a table of events is before its message, and always shown', () => {
  assert.deepEqual(
    withCounts(table(recorded, [...names, 'm', '2m', 3, 'n'])),
    table(ours, [...names, 3, 'm', '2m', 'n']),
  )
})

test('later frames of a watch have no column definitions', () => {
  assert.deepEqual(
    withCounts([{ type: 'ADDED', object: table(null, [...names, 'm', '2m', 3, 'n']) }]),
    [{ type: 'ADDED', object: table(null, [...names, 3, 'm', '2m', 'n']) }],
  )
})

test('our tables, other tables and other responses stay unchanged', () => {
  for (const answer of [
    table(ours, [...names, 3, 'm', '2m', 'n']),
    table([{ name: 'Name', priority: 0 }], ['shop']),
    { kind: 'Event', metadata: { name: 'a' } },
    'text',
  ]) {
    assert.deepEqual(withCounts(answer), answer)
  }
})
