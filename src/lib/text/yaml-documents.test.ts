import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { yamlDocuments } from './yaml-documents.ts'

const valuesOf = (text: string): unknown[] => [...yamlDocuments(text)].map(({ value }) => value)

describe('yamlDocuments', () => {
  test('counts empty documents but does not return them', () => {
    const text = '# note\n---\na: 1\n---\n\n---\nb: [x, "y"]\n...\n'
    assert.deepEqual(
      [...yamlDocuments(text)],
      [
        { number: 1, value: { a: 1 } },
        { number: 3, value: { b: ['x', 'y'] } },
      ],
    )
  })

  test('recognises a document marker inside a text block only at the start of a line', () => {
    assert.deepEqual(valuesOf('a: |\n  ---\n  b\n--- {c: d}\n'), [{ a: '---\nb\n' }, { c: 'd' }])
  })

  test('accepts one notation of numbers', () => {
    assert.deepEqual(valuesOf('[16, -1.5, 1e3, 0x10, 0o17]'), [[16, -1.5, 1000, '0x10', '0o17']])
  })

  test('reads JSON as YAML, with names that every object inherits as ordinary names', () => {
    const [value] = valuesOf('{"__proto__": {"x": 1}, "constructor": 2}')
    assert.deepEqual(Object.keys(value as object), ['__proto__', 'constructor'])
  })

  test('names the document and the line of a syntax error without quoting the text', () => {
    const secret = 'hunter2'
    for (const text of [
      `a: 1\n---\nb: [${secret}\n`,
      `a: 1\n---\nb: *${secret}\n`,
      `a: 1\n---\n${secret}: 1\n${secret}: 2\n`,
      `a: 1\n---\n\t${secret}: "\n`,
    ]) {
      assert.throws(
        () => valuesOf(text),
        (error) =>
          /^YamlSyntaxError: document 2: /.test(String(error)) && !String(error).includes(secret),
        text,
      )
    }
  })

  test('rejects aliases that expand exponentially', () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}, *l${i}, *l${i}]`,
    )
    assert.throws(() => valuesOf(`l0: &l0 [x]\n${levels.join('\n')}\n`), /too many aliases/)
  })
})
