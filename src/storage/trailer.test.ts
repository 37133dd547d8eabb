import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Span } from './occurrences.ts'
import {
  blanksOf,
  decodeTrailer,
  encodeTrailer,
  NO_TRAILER,
  readBlanks,
  type Trailer,
  type TrailerFields,
  trailerStart,
  writeBlanks,
} from './trailer.ts'

const secondMs = 1_000
const lastSeenMs = Date.UTC(2026, 10, 17, 3, 4, 5, 678)

function fieldsOf(occurrences: number, name = 'web-7d9f8b6c5-x2k4q'): TrailerFields {
  return { firstSeenMs: lastSeenMs - 9_000_000, lastSeenMs, occurrences, regarding: { name } }
}

const spans = fc
  .array(
    fc.record({
      gap: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100_000 })),
      length: fc.integer({ min: 0, max: 50_000 }),
      count: fc.integer({ min: 1, max: 100_000 }),
    }),
    { minLength: 1, maxLength: 32 },
  )
  .map((list) => {
    let atMs = Date.UTC(2026, 0, 1)
    return list.map(({ gap, length, count }, index): Span => {
      const isOpen = index > 0 && gap === 0 && count > 1
      const firstMs = atMs + gap * secondMs
      atMs = firstMs + length * secondMs
      return { firstMs, lastMs: atMs, count, ...(isOpen && { isOpen }) }
    })
  })

const workloads = fc.record(
  {
    kind: fc.constantFrom('Deployment', 'CronJob', 'Rollout', 'Über'),
    name: fc.constantFrom('web', 'web-7d9f8b6c5', 'other', ''),
    rule: fc.constantFrom('event' as const, 'owner' as const),
  },
  { noNullPrototype: true },
)

const trailers: fc.Arbitrary<Trailer> = fc.record(
  {
    occurrences: fc.record({ spans, isFirstEstimated: fc.boolean() }, { noNullPrototype: true }),
    workload: workloads,
    node: fc.constantFrom('worker-3', 'ip-10-1-2-3.eu-central-1.compute.internal'),
  },
  { requiredKeys: [], noNullPrototype: true },
)

describe('a trailer', () => {
  test('is read as it was written, through the blanks of a stored value', () => {
    fc.assert(
      fc.property(trailers, (trailer) => {
        const count = trailer.occurrences?.spans.reduce((sum, one) => sum + one.count, 0) ?? 7
        const fields = fieldsOf(count)
        const encoded = encodeTrailer(trailer, fields)
        const body = Buffer.from('{"metadata":{}}')
        const value = Buffer.concat([body, Buffer.alloc(blanksOf(encoded))])
        writeBlanks(encoded, value, body.length)
        assert.deepEqual(JSON.parse(value.toString()), { metadata: {} })
        assert.doesNotMatch(value.toString(), /[\r\n]/)
        assert.equal(trailerStart(value), body.length)
        const read = readBlanks(value.subarray(body.length))
        assert.deepEqual(decodeTrailer(read, fields), trailer)
      }),
    )
  })

  test('has the time of the last occurrence as exactly as the event', () => {
    const occurrences = {
      spans: [{ firstMs: lastSeenMs, lastMs: lastSeenMs, count: 1 }],
      isFirstEstimated: false,
    }
    const fields = fieldsOf(1)
    const { occurrences: read } = decodeTrailer(encodeTrailer({ occurrences }, fields), fields)
    assert.deepEqual(read, occurrences)
  })

  test('is empty when there is nothing to say', () => {
    assert.equal(encodeTrailer({}, fieldsOf(1)).length, 0)
    assert.deepEqual(decodeTrailer(NO_TRAILER, fieldsOf(1)), {})
    assert.deepEqual(decodeTrailer(undefined, fieldsOf(1)), {})
  })

  test('of 32 raises within two hours takes at most 150 bytes in memory', () => {
    const list = Array.from({ length: 32 }, (_, at) => {
      const firstMs = lastSeenMs - (32 - at) * 240_000
      return { firstMs, lastMs: firstMs + 200_000, count: 20 }
    })
    const occurrences = { spans: list, isFirstEstimated: false }
    const { length } = encodeTrailer({ occurrences }, fieldsOf(640))
    assert.ok(length <= 150, `${length}`)
  })

  test('with other counts than the event has says nothing about occurrences', () => {
    const occurrences = {
      spans: [{ firstMs: lastSeenMs, lastMs: lastSeenMs, count: 3 }],
      isFirstEstimated: true,
    }
    const encoded = encodeTrailer({ occurrences, node: 'worker-3' }, fieldsOf(3))
    assert.deepEqual(decodeTrailer(encoded, fieldsOf(4)), { node: 'worker-3' })
  })

  test('with occurrences after the last time of the event says nothing about them', () => {
    const occurrences = {
      spans: [{ firstMs: lastSeenMs, lastMs: lastSeenMs, count: 3 }],
      isFirstEstimated: true,
    }
    const fields = fieldsOf(3)
    const earlier = { ...fields, lastSeenMs: lastSeenMs - secondMs }
    assert.deepEqual(decodeTrailer(encodeTrailer({ occurrences }, fields), fields), { occurrences })
    assert.deepEqual(decodeTrailer(encodeTrailer({ occurrences }, earlier), earlier), {})
  })

  test('leaves out names that no object of Kubernetes has', () => {
    const long = 'x'.repeat(64)
    const workload = { kind: 'Job', name: long, rule: 'event' as const }
    assert.equal(encodeTrailer({ workload, node: long }, fieldsOf(1)).length, 0)
  })

  test('of any other form or length is read as nothing, or as something harmless', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const read = decodeTrailer(Buffer.from(bytes), fieldsOf(5))
        const count = read.occurrences?.spans.reduce((sum, one) => sum + one.count, 0) ?? 5
        assert.equal(count, 5)
      }),
    )
  })
})
