import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { withoutTokens } from './token-scrub.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'

describe('withoutTokens', () => {
  test('redacts a signed token but not the text around it', () => {
    assert.equal(withoutTokens(`/a/${JWT}/b`), '/a/[redacted]/b')
    assert.equal(withoutTokens(`x${JWT}.y ${JWT}`), 'x[redacted].y [redacted]')
    assert.equal(withoutTokens(`a.b.${JWT}`), 'a.b.[redacted]')
    assert.equal(withoutTokens('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.'), '[redacted]')
    assert.equal(withoutTokens('Bearer s3cr3t, more'), 'Bearer [redacted] more')
  })

  test('keeps a text that only begins like a token', () => {
    for (const text of [
      'eyJ',
      'eyJ.eyJ.eyJ',
      'eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ',
      'eyJhbGciOiJS.x.y',
    ]) {
      assert.equal(withoutTokens(text), text)
    }
  })

  test('redacts a truncated token as a whole', () => {
    for (let length = 16; length < JWT.length; length += 1) {
      assert.equal(withoutTokens(`/a/${JWT}`, 3 + length), '/a/[redacted]', String(length))
    }
    fc.assert(
      fc.property(fc.string(), fc.nat(200), (text, length) => {
        assert.equal(withoutTokens(text, length), text.slice(0, length))
      }),
    )
  })

  test('takes linear time for a long text crafted to be slow', () => {
    const size = 1 << 16
    for (const part of [
      'eyJ',
      'eyJ.',
      'eyJaaaaaaaa.',
      'eyJaaaaaaaa.aaaaaaaa',
      'bearer ',
      'bearer  ',
      '.',
    ]) {
      const start = process.threadCpuUsage()
      withoutTokens(part.repeat(size / part.length))
      withoutTokens(`eyJaaaaaaaa.${part.repeat(size / part.length)}`)
      const ms = process.threadCpuUsage(start).user / 1000
      assert.ok(ms < 500, `${part}: ${ms} ms`)
    }
  })
})
