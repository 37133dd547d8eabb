import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../status.ts'
import type { Labels } from './compact-labels.ts'
import { parseLabelSelector } from './label-selector.ts'

const odd = { parity: 'odd', n: '1' }
const even = { parity: 'even', n: '4' }
const bare = {}

/** A selector, and those of the three label sets that it matches. */
const choices: readonly (readonly [string, readonly Labels[]])[] = [
  ['', [odd, even, bare]],
  [' \t', [odd, even, bare]],
  ['parity=odd', [odd]],
  ['parity==odd', [odd]],
  [' parity = odd ', [odd]],
  ['parity!=odd', [even, bare]],
  ['parity', [odd, even]],
  ['!parity', [bare]],
  ['! parity', [bare]],
  ['n in (1,2)', [odd]],
  ['n in ( 1 , 2 )', [odd]],
  ['n notin (1,2)', [even, bare]],
  ['n>3', [even]],
  ['n<3', [odd]],
  ['n>0', [odd, even]],
  ['parity>0', []],
  ['parity=odd,n=1', [odd]],
  ['parity=odd,n=4', []],
  ['parity=', []],
  ['parity!=', [odd, even, bare]],
  ['parity=,n=1', []],
  ['n in ()', []],
  ['n notin ()', [odd, even, bare]],
  ['n in (,1)', [odd]],
  ['n in (1,)', [odd]],
  ['n in (1,,4)', [odd, even]],
  ['in', []],
  ['!notin', [odd, even, bare]],
  ['in in (in,notin)', []],
  ['n notin (in)', [odd, even, bare]],
  ['constructor', []],
  ['!toString', [odd, even, bare]],
  ['constructor!=x', [odd, even, bare]],
]

const nameAdvice =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " +
  "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const long = 'x'.repeat(70)

const refusals: readonly (readonly [string, string])[] = [
  [
    'bad key!=x',
    "unable to parse requirement: found 'key', expected: in, notin, =, ==, !=, gt, lt",
  ],
  ['parity=odd,', "found '', expected: identifier after ','"],
  ['parity=odd,=', "found '=', expected: identifier after ','"],
  ['=x', "found '=', expected: !, identifier, or 'end of string'"],
  [',', "found ',', expected: !, identifier, or 'end of string'"],
  ['n in (1,2', "unable to parse requirement: found '', expected: ',' or ')'"],
  ['n in (1 2)', "unable to parse requirement: found '2', expected: ',' or ')'"],
  ['n in (1,', "unable to parse requirement: found '', expected: ',', or identifier"],
  ['n in (1,=)', "unable to parse requirement: found '=', expected: ',', or identifier"],
  ['n in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
  ['n in (=', "unable to parse requirement: found '=', expected: ',', ')' or identifier"],
  ['n ~ 3', "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt"],
  ['parity=bad value!', "found 'value', expected: ',' or 'end of string'"],
  ['a=b=c', "found '=', expected: ',' or 'end of string'"],
  ['!a=b', "found '=', expected: ',' or 'end of string'"],
  ['a===b', "unable to parse requirement: found '=', expected: identifier"],
  ['a in', "unable to parse requirement: found '' expected: '('"],
  ['a in b', "unable to parse requirement: found 'b' expected: '('"],
  ['!', "unable to parse requirement: found '', expected: identifier"],
  [
    'a>x',
    'unable to parse requirement: values[0]: Invalid value: "x": ' +
      "for 'Gt', 'Lt' operators, the value must be an integer",
  ],
  ['-bad=1', `unable to parse requirement: <nil>: Invalid value: "-bad": ${nameAdvice}`],
  ['/a', 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'],
  [
    'b.c/',
    `unable to parse requirement: <nil>: Invalid value: "b.c/": name part must be non-empty; ${nameAdvice}`,
  ],
  [
    `${long}=1`,
    `unable to parse requirement: <nil>: Invalid value: "${long}": name part must be no more than 63 bytes`,
  ],
  [
    `a in (${long})`,
    `unable to parse requirement: values[0][a]: Invalid value: "${long}": must be no more than 63 bytes`,
  ],
  [
    `a in (z,${long},ok,${long}y)`,
    'unable to parse requirement: [' +
      `values[1][a]: Invalid value: "${long}": must be no more than 63 bytes, ` +
      `values[2][a]: Invalid value: "${long}y": must be no more than 63 bytes]`,
  ],
]

describe('parseLabelSelector', () => {
  test('each operator matches the expected labels', () => {
    for (const [text, chosen] of choices) {
      const selector = parseLabelSelector(text)
      const found = [odd, even, bare].filter((labels) => selector.matches(labels))
      assert.deepEqual(found, chosen, text)
    }
  })

  test('isEverything is true only for a selector without requirements', () => {
    for (const [text] of choices) {
      assert.equal(parseLabelSelector(text).isEverything, text.trim() === '', text)
    }
  })

  test('an error contains the found and the expected token', () => {
    for (const [text, message] of refusals) {
      assert.throws(
        () => parseLabelSelector(text),
        { name: 'StatusError', code: 400, message },
        text,
      )
    }
  })

  test('integers beyond the safe range of a number are compared exactly', () => {
    const selector = parseLabelSelector('n>9223372036854775806')
    assert.ok(selector.matches({ n: '9223372036854775807' }))
    assert.ok(!selector.matches({ n: '9223372036854775806' }))
    assert.ok(
      !selector.matches({ n: '9223372036854775808' }),
      'a value beyond 64 bits is not an integer',
    )
  })

  test('names that objects inherit are matched like any other', () => {
    const labels = JSON.parse('{"constructor":"x","toString":"y"}') as Labels
    assert.ok(parseLabelSelector('constructor=x,toString in (y)').matches(labels))
  })

  // Difference from Kubernetes: smaller-selectors.
  test('a selector with too many requirements, values or bytes is rejected', () => {
    const names = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`)
    const refused = (text: string, message: RegExp) =>
      assert.throws(() => parseLabelSelector(text), { code: 400, message })
    assert.ok(parseLabelSelector(names(100).join(',')))
    refused(names(101).join(','), /at most 100 requirements/)
    const list = parseLabelSelector(`k in (${names(1000).join(',')})`)
    assert.deepEqual(
      ['k0', 'k500', 'k999', 'k1000', '', 'k'].map((k) => list.matches({ k })),
      [true, true, true, false, false, false],
    )
    refused(`k in (${names(1001).join(',')})`, /at most 1000 values in its lists/)
    refused(
      `k in (${names(600).join(',')}),k notin (${names(600).join(',')})`,
      /at most 1000 values in its lists/,
    )
    refused(' '.repeat(8193), /at most 8192 bytes/)
    refused('é'.repeat(4097), /at most 8192 bytes/)
  })

  test('an error message stays short for any selector', () => {
    const much = 'é'.repeat(60_000)
    const lists = Array.from({ length: 9000 }, (_, n) => `é${n}`)
    for (const text of [much, `a ${much}`, `a=${much}`, `a in (${lists.join(',')})`]) {
      assert.throws(
        () => parseLabelSelector(text),
        (error) => error instanceof StatusError && error.message.length < 10_000,
      )
    }
  })

  test('any text is either parsed or rejected with a 400', () => {
    const piece = fc.constantFrom(
      ...['a', 'in', 'notin', '1', '-', '/', 'é', '\0', ' ', '(', ')', ',', '!', '=', '<', '>'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          parseLabelSelector(pieces.join('')).matches({ a: '1', in: 'a' })
        } catch (error) {
          assert.ok(error instanceof StatusError && error.code === 400, String(error))
        }
      }),
    )
  })

  test('a list matches exactly its values', () => {
    const word = fc.stringMatching(/^[a-z0-9]{0,3}$/)
    fc.assert(
      fc.property(fc.array(word, { minLength: 1 }), word, (values, value) => {
        const list = `(${values.join(',')})`
        const isIn = values.includes(value)
        assert.equal(parseLabelSelector(`k in ${list}`).matches({ k: value }), isIn)
        assert.equal(parseLabelSelector(`k notin ${list}`).matches({ k: value }), !isIn)
      }),
    )
  })
})
