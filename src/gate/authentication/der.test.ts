import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { derInteger, derMembers, derOid, derText, derValue, derValues, TAG } from './der.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

describe('der', () => {
  test('a value has its tag and its content', () => {
    assert.deepEqual(derValue(hex('13 03 616263')), { tag: TAG.printable, content: hex('616263') })
    assert.equal(derValue(hex(`04 81 80 ${'00'.repeat(128)}`)).content.length, 128)
  })

  test('the members of a sequence are read in order', () => {
    const members = derMembers(derValue(hex('30 06 020105 0c0161')), TAG.sequence)
    assert.equal(derInteger(members[0]), 5)
    assert.equal(members[1] && derText(members[1]), 'a')
  })

  for (const [what, bytes] of [
    ['no byte', ''],
    ['more than one value', '0500 0500'],
    ['a truncated content', '04 02 00'],
    ['a truncated length', '04 82 01'],
    ['an indefinite length', '04 80 00 00'],
    ['a length that is not minimal', '04 81 01 00'],
    ['a length with a leading zero', `04 82 00 80 ${'00'.repeat(128)}`],
    ['a length of four bytes', '04 84 00000001 00'],
    ['a tag of several bytes', '1f 01 00'],
  ] as const) {
    test(`${what} is refused`, () => {
      assert.throws(() => derValue(hex(bytes)))
    })
  }

  test('an object identifier is written with dots', () => {
    assert.equal(derOid(derValue(hex('06 03 550403'))), '2.5.4.3')
    assert.equal(derOid(derValue(hex('06 09 2b0601040183c25302'))), '1.3.6.1.4.1.57683.2')
    assert.throws(() => derOid(derValue(hex('06 02 5584'))))
  })

  test('a string is decoded by its type, and invalid bytes and other types are refused', () => {
    assert.equal(derText(derValue(hex('0c 02 c3ab'))), 'ë')
    assert.equal(derText(derValue(hex('1e 02 00eb'))), 'ë')
    assert.equal(derText(derValue(hex('13 01 41'))), 'A')
    for (const wrong of ['0c 01 eb', '13 01 eb', '1e 01 00', '14 01 41', '04 01 41']) {
      assert.throws(() => derText(derValue(hex(wrong))))
    }
  })

  test('any bytes are either read completely or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        let values: ReturnType<typeof derValues>
        try {
          values = derValues(Buffer.from(bytes))
        } catch {
          return
        }
        const read = values.reduce((sum, { content }) => sum + content.length + 2, 0)
        assert.equal(read, bytes.length)
      }),
    )
  })
})
