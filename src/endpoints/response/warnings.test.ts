import assert from 'node:assert/strict'
import { validateHeaderValue } from 'node:http'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { warningHeader } from './warnings.ts'

/** The texts in a header, as a client parses them. */
function textsIn(header: string): string[] {
  const texts = [...header.matchAll(/299 - "((?:[^"\\]|\\.)*)"(?:, |$)/gs)].map(
    ([whole, text]) => ({
      whole,
      text: Buffer.from((text ?? '').replaceAll(/\\(.)/gs, '$1'), 'latin1').toString(),
    }),
  )
  assert.equal(texts.map(({ whole }) => whole).join(''), header, 'the header has nothing else')
  return texts.map(({ text }) => text)
}

describe('warningHeader', () => {
  test('without warnings there is no header', () => {
    assert.equal(warningHeader([]), undefined)
  })

  test('texts are quoted and escaped, and duplicates are dropped', () => {
    assert.equal(warningHeader(['unknown field "a"']), '299 - "unknown field \\"a\\""')
    assert.equal(warningHeader(['a\\b', 'c', 'c']), '299 - "a\\\\b", 299 - "c"')
  })

  test('control characters become spaces', () => {
    assert.equal(warningHeader(['a\r\nb\0c\x7fd\u0085e\tf']), '299 - "a  b c d e f"')
  })

  test('other characters are sent as the bytes of their UTF-8', () => {
    const header = warningHeader(['größe 📣']) ?? ''
    assert.match(header, /^[\x20-\x7e\x80-\xff]*$/)
    assert.deepEqual(textsIn(header), ['größe 📣'])
  })

  test('long texts are truncated, but not within a character', () => {
    const texts = Array.from({ length: 17 }, (_, index) => `${index}${'📣'.repeat(200)}`)
    const sent = textsIn(warningHeader(texts) ?? '')
    assert.ok(sent.length > 10)
    for (const [index, text] of sent.entries()) {
      assert.ok(text.length <= 256)
      assert.ok(texts[index]?.startsWith(text), text)
    }
  })

  test('a single text may use the whole limit', () => {
    const long = 'x'.repeat(4096)
    assert.deepEqual(textsIn(warningHeader([long]) ?? ''), [long])
    assert.deepEqual(textsIn(warningHeader([`${long}x`]) ?? ''), ['x'.repeat(256)])
  })

  test('the header stays short, however many warnings there are', () => {
    const header = warningHeader(
      Array.from({ length: 5000 }, (_, index) => `unknown field "${index}${'ä'.repeat(300)}"`),
    )
    assert.ok(Buffer.byteLength(header ?? '', 'latin1') < 16 * 1024)
  })

  test('any text makes a valid header that can be parsed back', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1 }), (texts) => {
        const header = warningHeader(texts) ?? ''
        validateHeaderValue('warning', header)
        const plain = [...new Set(texts)].map((text) =>
          text.toWellFormed().replaceAll(/\p{Cc}/gu, ' '),
        )
        assert.deepEqual(textsIn(header), plain)
      }),
    )
  })
})
