import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  exceedsBytes,
  isQualifiedName,
  labelProblems,
  labelValueProblems,
  pathSegmentNames,
  qualifiedNameProblems,
  subdomainNames,
  subdomainProblems,
} from './names.ts'

const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const NAME =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

type Table = readonly (readonly [string, readonly string[]])[]

const tables: readonly (readonly [string, (text: string) => readonly string[], Table])[] = [
  [
    'subdomain',
    subdomainProblems,
    [
      ['a', []],
      ['name.with.dots-and-9', []],
      ['a--b', []],
      ['x'.repeat(253), []],
      ['x'.repeat(254), ['must be no more than 253 characters']],
      ['X'.repeat(254), ['must be no more than 253 characters', SUBDOMAIN]],
      ...['', 'A', 'a_b', '-a', 'a-', 'a..b', 'a.-b', 'a-.b', '.', '..', 'a.', '.a', 'é', ' '].map(
        (text): [string, string[]] => [text, [SUBDOMAIN]],
      ),
      ['a/b', [SUBDOMAIN]],
      ['a\n', [SUBDOMAIN]],
    ],
  ],
  [
    'label',
    labelProblems,
    [
      ['my-name', []],
      ['x'.repeat(63), []],
      ['x'.repeat(64), ['must be no more than 63 characters']],
      ['Bad_NS', [LABEL]],
      ['', [LABEL]],
      ['a.b', ['must not contain dots']],
      ['a..b', [LABEL]],
    ],
  ],
  [
    'qualified name',
    qualifiedNameProblems,
    [
      ['a', []],
      ['MyName_1.x', []],
      ['example.com/MyName', []],
      [`${'a'.repeat(253)}/${'B'.repeat(63)}`, []],
      ['', ['name part must be non-empty', `name part ${NAME}`]],
      ['bad controller!', [`name part ${NAME}`]],
      ['-a', [`name part ${NAME}`]],
      ['a-', [`name part ${NAME}`]],
      ['-', [`name part ${NAME}`]],
      ['@[`{', [`name part ${NAME}`]],
      ['x'.repeat(129), ['name part must be no more than 63 bytes']],
      ['é'.repeat(32), ['name part must be no more than 63 bytes', `name part ${NAME}`]],
      ['/x', ['prefix part must be non-empty']],
      ['/', ['prefix part must be non-empty', 'name part must be non-empty', `name part ${NAME}`]],
      ['a/', ['name part must be non-empty', `name part ${NAME}`]],
      ['A/b', [`prefix part ${SUBDOMAIN}`]],
      [`${'a'.repeat(254)}/b`, ['prefix part must be no more than 253 bytes']],
      [
        'a/b/c',
        [
          `a valid label key ${NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
        ],
      ],
    ],
  ],
  [
    'label value',
    labelValueProblems,
    [
      ['', []],
      ['v', []],
      ['A_b.C-9', []],
      ['x'.repeat(63), []],
      ['x'.repeat(64), ['must be no more than 63 bytes']],
      ['bad value!', [VALUE]],
      ['_a', [VALUE]],
      ['a/b', [VALUE]],
    ],
  ],
  [
    'name of a new object',
    subdomainNames.name,
    [
      ['a', []],
      ['a-', [SUBDOMAIN]],
    ],
  ],
  [
    'prefix of a new name',
    subdomainNames.prefix,
    [
      ['gen-', []],
      ['gen', []],
      ['a.-', []],
      ['-', [SUBDOMAIN]],
      ['gen.', [SUBDOMAIN]],
      ['Bad_', [SUBDOMAIN]],
    ],
  ],
  [
    'name in a path',
    pathSegmentNames.name,
    [
      ['Bad_Name', []],
      ['.', ["may not be '.'"]],
      ['..', ["may not be '..'"]],
      ['...', []],
      ['a/b%c', ["may not contain '/'", "may not contain '%'"]],
    ],
  ],
  [
    'prefix of a name in a path',
    pathSegmentNames.prefix,
    [
      ['.', []],
      ['a%', ["may not contain '%'"]],
    ],
  ],
]

for (const [subject, problemsOf, table] of tables) {
  for (const [text, problems] of table) {
    const short = text.length > 20 ? `${text.slice(0, 20)}... (${text.length})` : text
    const title = problems.length === 0 ? 'is valid' : `has ${problems.length} problem(s)`
    test(`${subject}: ${JSON.stringify(short)} ${title}`, () => {
      assert.deepEqual(problemsOf(text), problems)
    })
  }
}

const likelyText = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'ab0zAZ9-_./é!@`{'), maxLength: 8 }),
  fc.string({ unit: fc.constantFrom('a', '-', '.'), minLength: 60, maxLength: 66 }),
)

test('a name is valid exactly when the published pattern matches', () => {
  const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
  const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
  const name = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
  fc.assert(
    fc.property(likelyText, (text) => {
      const isShort = text.length <= 63
      assert.equal(subdomainProblems(text).length === 0, subdomain.test(text))
      assert.equal(labelProblems(text).length === 0, label.test(text) && isShort)
      assert.equal(
        labelValueProblems(text).length === 0,
        (text === '' || name.test(text)) && isShort,
      )
      const [first = '', second, third] = text.split('/')
      const isQualified =
        third === undefined &&
        name.test(second ?? first) &&
        (second ?? first).length <= 63 &&
        (second === undefined || subdomain.test(first))
      assert.equal(isQualifiedName(text), isQualified)
      assert.equal(qualifiedNameProblems(text).length === 0, isQualified)
    }),
  )
})

test('exceedsBytes counts UTF-8 bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, bytesMax) => {
      assert.equal(exceedsBytes(text, bytesMax), Buffer.byteLength(text) > bytesMax)
    }),
  )
})

test('a name of megabytes is validated like any other', () => {
  assert.deepEqual(subdomainProblems('a'.repeat(3_000_000)), [
    'must be no more than 253 characters',
  ])
  assert.equal(qualifiedNameProblems('/'.repeat(3_000_000)).length, 1)
})
