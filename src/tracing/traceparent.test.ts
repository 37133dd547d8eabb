import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { parseTraceparent } from './traceparent.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

describe('parseTraceparent', () => {
  test('reads from the flags whether the client records its trace', () => {
    for (const [flags, isSampled] of [
      ['01', true],
      ['00', false],
      ['03', true],
      ['fe', false],
    ] as const) {
      const found = parseTraceparent(`00-${TRACE}-${SPAN}-${flags}`)
      assert.deepEqual(found, { traceId: TRACE, spanId: SPAN, isSampled }, flags)
    }
  })

  test('accepts more fields in a later version, and none in version 00', () => {
    const found = { traceId: TRACE, spanId: SPAN, isSampled: true }
    assert.deepEqual(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-brings`), found)
    assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-01-more`), undefined)
  })

  test('ignores headers that the standard does not allow', () => {
    for (const header of [
      '',
      `ff-${TRACE}-${SPAN}-01`,
      `00-${'0'.repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}`,
      `00-${TRACE}-${SPAN}-1`,
      `00-${TRACE}-${SPAN}-01.`,
      ` 00-${TRACE}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-01\n`,
      // Sent twice.
      `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
      `01-${TRACE}-${SPAN}-01-${'x'.repeat(1000)}`,
    ]) {
      assert.equal(parseTraceparent(header), undefined, header)
    }
  })

  test('returns hexadecimal ids or undefined for any text', () => {
    const part = fc.oneof(fc.string({ maxLength: 40 }), fc.stringMatching(/^[0-9a-f]{1,34}$/))
    const header = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 600 }),
      fc.array(part, { maxLength: 6 }).map((parts) => parts.join('-')),
      fc.stringMatching(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,9})?$/),
    )
    let found = 0
    fc.assert(
      fc.property(header, (text) => {
        const parent = parseTraceparent(text)
        if (parent === undefined) return
        found += 1
        assert.match(parent.traceId, /^(?!0+$)[0-9a-f]{32}$/)
        assert.match(parent.spanId, /^(?!0+$)[0-9a-f]{16}$/)
        assert.ok(text.includes(`-${parent.traceId}-${parent.spanId}-`))
      }),
      { numRuns: 2000 },
    )
    assert.ok(found > 100, 'valid headers are among the generated ones')
  })
})
