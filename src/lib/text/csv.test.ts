import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { CsvError, csvRecords } from './csv.ts'

const fieldsOf = (text: string): (readonly string[])[] =>
  [...csvRecords(text)].map(({ fields }) => fields)

describe('csvRecords', () => {
  test('reads bare and quoted fields, with LF or CRLF and without a last line end', () => {
    assert.deepEqual(fieldsOf('a,b\r\n"c,d","e ""f"""\n g ,'), [
      ['a', 'b'],
      ['c,d', 'e "f"'],
      [' g ', ''],
    ])
  })

  test('skips an empty line but not an empty quoted field', () => {
    assert.deepEqual(fieldsOf('\n\r\na\n\n""\n'), [['a'], ['']])
    assert.deepEqual(fieldsOf(''), [])
  })

  test('numbers records by their first line, even after a field of several lines', () => {
    const lines = [...csvRecords('a\n\n"b\nc\r\nd",e\nf')].map(({ line, fields }) => [line, fields])
    assert.deepEqual(lines, [
      [1, ['a']],
      [3, ['b\nc\nd', 'e']],
      [6, ['f']],
    ])
  })

  test('rejects invalid CSV with its line number', () => {
    for (const [text, line] of [
      ['a\nb"c', 2],
      ['a,"b', 1],
      ['a\n"b\n\n', 2],
      ['"a\nb"c', 2],
      ['"a"\rb', 1],
      [' "a"', 1],
    ] as const) {
      assert.throws(
        () => fieldsOf(text),
        (error) => error instanceof CsvError && error.line === line,
        JSON.stringify(text),
      )
    }
  })

  test('reads quoted fields back unchanged', () => {
    const field = fc.string({ unit: fc.constantFrom('a', ',', '"', '\n', ' ', '\r') })
    fc.assert(
      fc.property(fc.array(fc.array(field, { minLength: 1 })), (records) => {
        const text = records.map((fields) => fields.map(quoted).join(',')).join('\n')
        const expected = records.map((fields) => fields.map((f) => f.replaceAll('\r\n', '\n')))
        assert.deepEqual(fieldsOf(text), expected)
      }),
    )
  })

  test('either reads a text or rejects it with the number of one of its lines', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', ',', '"', '\n', '\r', ' ') }), (text) => {
        try {
          fieldsOf(text)
        } catch (error) {
          assert.ok(error instanceof CsvError)
          assert.ok(error.line >= 1 && error.line <= text.split('\n').length)
        }
      }),
    )
  })
})

function quoted(field: string): string {
  return `"${field.replaceAll('"', '""')}"`
}
