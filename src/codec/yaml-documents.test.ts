import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { yamlDocuments } from './yaml-documents.ts'

const valuesOf = (text: string): unknown[] => [...yamlDocuments(text)].map(({ value }) => value)

describe('yamlDocuments', () => {
  test('documents are counted with those that have no content, which are left out', () => {
    const text = '# note\n---\na: 1\n---\n\n---\nb: [x, "y"]\n...\n'
    assert.deepEqual(
      [...yamlDocuments(text)],
      [
        { number: 1, value: { a: 1 } },
        { number: 3, value: { b: ['x', 'y'] } },
      ],
    )
  })

  test('a marker inside a text block of a document is none unless it starts the line', () => {
    assert.deepEqual(valuesOf('a: |\n  ---\n  b\n--- {c: d}\n'), [{ a: '---\nb\n' }, { c: 'd' }])
  })

  test('JSON is YAML; names that every object inherits are names', () => {
    const [value] = valuesOf('{"__proto__": {"x": 1}, "constructor": 2}')
    assert.deepEqual(Object.keys(value as object), ['__proto__', 'constructor'])
  })

  test('a mistake is told by document and line, without a word of the text', () => {
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

  test('aliases that multiply without end are refused', () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}, *l${i}, *l${i}]`,
    )
    assert.throws(() => valuesOf(`l0: &l0 [x]\n${levels.join('\n')}\n`), /far too many/)
  })
})
