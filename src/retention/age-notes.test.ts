import assert from 'node:assert/strict'
import { test } from 'node:test'
import { versionOfState } from '../storage/resource-version.ts'
import { type AgeNotes, decodeAges, encodeAges } from './age-notes.ts'

const ages: AgeNotes = {
  replica: 'host/1',
  createRevision: 7,
  lease: 7587883487123456789n,
  renewedMsAgo: 4.2,
  wallTimeMs: 1_794_710_508_193,
  notes: [
    { version: versionOfState(1_000), ageMs: 90_000.9 },
    { version: versionOfState(1_012), ageMs: 80_000.1 },
    { version: versionOfState(1_012_000), ageMs: 0 },
  ],
}
const revisions = { createRevision: 7, modRevision: 1_012_001 }

test('age record: is decoded as it was encoded, and no age has grown', () => {
  const value = encodeAges(ages)
  assert.match(value.toString(), /"notes":\[1000,90000,12,10000,1010988,80000\]/)
  assert.deepEqual(decodeAges({ value, ...revisions }), {
    ...ages,
    renewedMsAgo: 5,
    notes: [
      { version: versionOfState(1_000), ageMs: 90_000 },
      { version: versionOfState(1_012), ageMs: 80_000 },
      { version: versionOfState(1_012_000), ageMs: 0 },
    ],
  })
  const none = encodeAges({ ...ages, notes: [] })
  assert.deepEqual(decodeAges({ value: none, ...revisions })?.notes, [])
})

test('age record: is rejected when it was copied from another etcd', () => {
  const value = encodeAges(ages)
  assert.equal(decodeAges({ value, createRevision: 8, modRevision: 2_000_000 }), undefined)
  assert.equal(decodeAges({ value, createRevision: 7, modRevision: 1_012_000 }), undefined)
  const first = encodeAges({ ...ages, createRevision: undefined })
  assert.equal(decodeAges({ value: first, ...revisions }), undefined)
})

test('age record: is rejected when the value is not one', () => {
  const right = JSON.parse(encodeAges(ages).toString())
  const wrong = [
    'x',
    '',
    'null',
    '[]',
    ...[
      { replica: 1 },
      { lease: 'x' },
      { lease: '9999999999999999999' },
      { lease: 5 },
      { renewedMsAgo: -1 },
      { renewedMsAgo: '4' },
      { wallTimeMs: null },
      { notes: undefined },
      { notes: [1] },
      { notes: [1, -5] },
      { notes: [-1, 5] },
      { notes: [1, 5, 1, 6] },
      { notes: [1.5, 5] },
      { notes: ['1', 5] },
    ].map((change) => JSON.stringify({ ...right, ...change })),
  ]
  for (const text of wrong) {
    assert.equal(decodeAges({ value: Buffer.from(text), ...revisions }), undefined, text)
  }
})
