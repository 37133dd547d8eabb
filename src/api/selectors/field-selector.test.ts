import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../status.ts'
import { coreFieldNames, parseFieldSelector } from './field-selector.ts'
import { patternsText } from './value-pattern.ts'

// All code units. (The built-in arbitrary of fast-check takes a second to set up.)
const anyText = fc
  .array(
    fc.oneof(fc.constantFrom(0x2a, 0x2c, 0x3d, 0x5c, 0x7c), fc.integer({ min: 0, max: 0xffff })),
  )
  .map((codes) => String.fromCharCode(...codes))

const printed = (text: string): string[] =>
  parseFieldSelector(text).map(({ field, operator, patterns }) => {
    const values = patterns.map((one) => `${one.text}${one.isPrefix ? '…' : ''}`)
    return `${field} ${operator} ${values.join(' or ')}`
  })

const read: readonly (readonly [string, readonly string[]])[] = [
  ['', []],
  [',', []],
  ['=', []],
  ['!=', []],
  ['==', []],
  ['metadata.name=e1', ['metadata.name = e1']],
  ['metadata.name==e1', ['metadata.name = e1']],
  ['metadata.name!=e1', ['metadata.name != e1']],
  ['reason=Odd,', ['reason = Odd']],
  ['type=Warning,reason=Odd', ['reason = Odd', 'type = Warning']],
  ['regarding.resourceVersion=', ['regarding.resourceVersion = ']],
  ['reason=a\\,b', ['reason = a,b']],
  ['reason=a\\=b\\\\', ['reason = a=b\\']],
  ['reason= a ', ['reason =  a ']],
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
    (name) => [`regarding.${name}=x`, [`regarding.${name} = x`]] as const,
  ),
  ['reportingController=ctl-b', ['reportingController = ctl-b']],
  ['metadata.namespace=ns', ['metadata.namespace = ns']],
  ['related.name!=x', ['related.name != x']],
  ['since=20m,text=a b', ['since = 20m', 'text = a b']],
  ['since=20m|1h', ['since = 20m|1h']],
  ['name=web-0', ['regarding.name = web-0']],
  ['reason=A|B', ['reason = A or B']],
  ['reason!=A|B|A', ['reason != A or B']],
  ['reason=A|', ['reason = A or ']],
  ['reason=Failed*', ['reason = Failed…']],
  ['reason=Failed*|A|Failed', ['reason = Failed… or A or Failed']],
  ['reason=a\\|b|c\\*|d\\**', ['reason = a|b or c* or d*…']],
  ['reason=a\\\\*', ['reason = a\\…']],
  ['reason=a\\\\|b', ['reason = a\\ or b']],
  ['text=a|b\\*', ['text = a or b*']],
]

const unsupported = [
  ...['reportingComponent', 'involvedObject.kind', 'involvedObject.name', 'source', 'order'],
  ...['deprecatedSource', 'note', 'metadata.uid', 'series.count', 'metadata.labels.x', 'bogus'],
  ...['constructor', '__proto__', ' reason', ''],
]

// Difference from Kubernetes: several-values-in-selectors.
const refusals: readonly (readonly [string, string])[] = [
  ...unsupported.map((name) => [`${name}=x`, `field label not supported: ${name}`] as const),
  ['reason', "invalid selector: 'reason'; can't understand 'reason'"],
  [
    'groupBy=reason,kind',
    "invalid selector: 'groupBy=reason,kind'; can't understand 'kind'; in a field selector join the fields by +: groupBy=reason+controller",
  ],
  ['type=a,reason', "invalid selector: 'type=a,reason'; can't understand 'reason'"],
  [
    'reason in (A, B)',
    "invalid selector: 'reason in (A, B)'; can't understand ' B)'; for several values write reason=A|B",
  ],
  [
    'type=Warning,reason notin (A)',
    "invalid selector: 'type=Warning,reason notin (A)'; can't understand 'reason notin (A)'; for several values write reason!=A",
  ],
  [
    'reason!=(A,B),type=Warning',
    "invalid selector: 'reason!=(A,B),type=Warning'; can't understand 'B)'; for several values write reason!=A|B",
  ],
  [
    'type=Warning,reason=A,B,C',
    "invalid selector: 'type=Warning,reason=A,B,C'; can't understand 'B'; for several values write reason=A|B|C",
  ],
  ['other=A,B', "invalid selector: 'other=A,B'; can't understand 'B'"],
  [
    'reason=Fail*ed',
    'reason: "Fail*ed": write * only at the end, as in reason=Fail*, or \\* for an asterisk',
  ],
  ['reason=**', 'reason: "**": write * only at the end, or \\* for an asterisk'],
  ['reason=A|*', 'reason: write at least one character before *'],
  [
    'text=back*',
    'text: "back*": leave out *, since a text is found anywhere; write \\* for an asterisk',
  ],
  [
    `reason=${Array.from({ length: 33 }, (_, n) => n).join('|')}`,
    'reason: at most 32 values can be joined by |',
  ],
  [
    `${Array.from({ length: 34 }, (_, n) => `reason!=${n}|a|b`).join(',')}`,
    'a field selector has at most 100 values',
  ],
  ['reason=a\\qb', 'invalid field selector: invalid escape sequence: \\q'],
  ['reason=a\\', 'invalid field selector: invalid escape sequence: \\'],
  ['reason=a=b', 'invalid field selector: unescaped character in value: 61'],
  ['reason===b', 'invalid field selector: unescaped character in value: 61'],
  ['z=1,b=1', 'field label not supported: b'],
]

describe('parseFieldSelector', () => {
  test('fields, operators and values are parsed', () => {
    for (const [text, requirements] of read) assert.deepEqual(printed(text), requirements, text)
  })

  test('an error names the invalid part', () => {
    for (const [text, message] of refusals) {
      assert.throws(
        () => parseFieldSelector(text),
        { name: 'StatusError', code: 400, message },
        text,
      )
    }
  })

  test('core/v1 selectors use the field names of core/v1', () => {
    const fields = (text: string) =>
      parseFieldSelector(text, coreFieldNames).map(({ field }) => field)
    assert.deepEqual(fields('involvedObject.name=web-0'), ['regarding.name'])
    assert.deepEqual(fields('reportingComponent=a,source=b'), ['reportingController', 'source'])
    assert.throws(() => fields('regarding.name=web-0'), {
      code: 400,
      message: 'field label not supported: regarding.name',
    })
  })

  // Difference from Kubernetes: smaller-selectors.
  test('a selector with too many requirements or bytes is rejected', () => {
    assert.equal(parseFieldSelector('reason=a,'.repeat(100)).length, 100)
    assert.throws(() => parseFieldSelector('reason=a,'.repeat(101)), {
      code: 400,
      message: 'a field selector has at most 100 requirements',
    })
    assert.throws(() => parseFieldSelector(`reason=${'x'.repeat(8192)}`), {
      code: 400,
      message: 'a field selector has at most 8192 bytes',
    })
  })

  test('every value can be selected when it is escaped', () => {
    fc.assert(
      fc.property(anyText, (value) => {
        const escaped = value.replace(/[\\,=|*]/g, '\\$&')
        const [{ patterns } = { patterns: [] }] = parseFieldSelector(`reason=${escaped}`)
        assert.deepEqual(patterns, [{ text: value, isPrefix: false }])
        assert.equal(patternsText(patterns), escaped)
      }),
    )
  })

  test('any text is either parsed or rejected with a 400', () => {
    const piece = fc.constantFrom(
      ...['reason', 'x', '=', '!', ',', '\\', ' ', '\ud800', '\0', '😀', '|', '*'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          parseFieldSelector(pieces.join(''))
        } catch (error) {
          assert.ok(error instanceof StatusError && error.code === 400, String(error))
        }
      }),
    )
  })
})
