import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Version } from '../../storage/resource-version.ts'
import { served } from '../../storage/stored-form.ts'
import { encodeSlice, unstoredEvent, wholeLengthMax, writeWhole } from './event-bytes.ts'

const bodies = [
  '{"metadata":{}}',
  '{"metadata":{"name":"a"}}',
  `{"metadata":{"name":"a"},"note":"${'n'.repeat(500)}"}`,
].map((text) => Buffer.from(text))
const borders = [0, 9, 10, 99_999_999, 100_000_000, 999_999_999, 4_294_967_296]
const version = fc.oneof(fc.maxSafeNat(), fc.nat(), fc.constantFrom(...borders))

describe('event bytes', () => {
  test('any version is inserted into a whole event and into a slice', () => {
    fc.assert(
      fc.property(fc.constantFrom(...bodies), version, fc.nat(20), (body, number, start) => {
        const event = unstoredEvent(body, number as Version)
        const expected = served({ ...event, version: number as Version }).toString()
        const target = Buffer.alloc(start + wholeLengthMax(event), '#')
        const end = writeWhole(target, start, event)
        assert.equal(target.toString('latin1', 0, end), '#'.repeat(start) + expected)
        const slice = { before: '<', from: 0, to: body.length, after: '>' }
        assert.equal(encodeSlice(event, slice).toString(), `<${expected}>`)
      }),
    )
  })

  test('an event without a version is copied unchanged', () => {
    for (const body of bodies) {
      const target = Buffer.alloc(1000)
      const end = writeWhole(target, 0, unstoredEvent(body))
      assert.deepEqual(target.subarray(0, end), body)
    }
  })
})
