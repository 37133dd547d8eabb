import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseFieldSelector } from '../../api/selectors/field-selector.ts'
import { isAnyMatch, patternsText } from '../../api/selectors/value-pattern.ts'
import { mergedFields } from './merged-fields.ts'

function merged(text: string): readonly string[] {
  return mergedFields(parseFieldSelector(text)).map(
    ({ field, operator, patterns }) => `${field}${operator}${patternsText(patterns)}`,
  )
}

test('requirements of one field are joined, and others stay as they are', () => {
  for (const [text, ...expected] of [
    ['reason=A', 'reason=A'],
    ['reason=A,reason=B', 'reason='],
    ['reason=A|B,reason=B|C,type=X', 'reason=B', 'type=X'],
    ['reason=A*|C,reason=AB*|AC', 'reason=AB*|AC'],
    ['reason!=A,reason!=B|C*,reason=D', 'reason!=A|B|C*', 'reason=D'],
    ['name=a|b,regarding.name=b', 'regarding.name=b'],
    ['mentions=Pod/a,mentions=Pod/b', 'mentions=Pod/a', 'mentions=Pod/b'],
    ['mentions!=Pod/a,mentions!=Pod/b', 'mentions!=Pod/a|Pod/b'],
    ['since=1h,since=2h,text=a,text=b', 'since=1h', 'since=2h', 'text=a', 'text=b'],
  ] as const) {
    assert.deepEqual(merged(text), expected, text)
  }
})

test('a value meets all requirements exactly when it meets the joined ones', () => {
  const value = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 })
  const pattern = fc.tuple(value, fc.constantFrom('', '', '*')).map((parts) => parts.join(''))
  const patterns = fc.array(pattern, { minLength: 1, maxLength: 3 }).map((all) => all.join('|'))
  const term = fc
    .tuple(fc.constantFrom('=', '!='), patterns)
    .map(([operator, values]) => `reason${operator}${values}`)
  fc.assert(
    fc.property(fc.array(term, { minLength: 1, maxLength: 4 }), value, (terms, reason) => {
      const fields = parseFieldSelector(terms.join(','))
      const [isMet, isStillMet] = [fields, mergedFields(fields)].map((all) =>
        all.every((one) => isAnyMatch(one.patterns, reason) === (one.operator === '=')),
      )
      assert.equal(isStillMet, isMet)
    }),
  )
})
