import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { StatusError } from '../../api/status.ts'
import type { Json } from '../../lib/json.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { parseYaml, yamlOf } from './yaml.ts'

function refusal(text: string): Error {
  try {
    parseYaml(text)
  } catch (error) {
    ok(error instanceof YamlSyntaxError || error instanceof StatusError, String(error))
    return error
  }
  throw new Error(`the text was accepted: ${text.slice(0, 40)}`)
}

function read(text: string): Json {
  return parseYaml(text).value
}

test('parseYaml parses an event', () => {
  const text = `apiVersion: events.k8s.io/v1
kind: Event
metadata:
  name: yml # a comment
  finalizers:
  - a
  - "b"
eventTime: 2026-01-02T03:04:05.678901Z
note: |
  two
  lines
regarding: {kind: Pod, namespace: ns, name: p}
`
  deepEqual(read(text), {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'yml', finalizers: ['a', 'b'] },
    eventTime: '2026-01-02T03:04:05.678901Z',
    note: 'two\nlines\n',
    regarding: { kind: 'Pod', namespace: 'ns', name: 'p' },
  })
  deepEqual(read(''), null)
  deepEqual(read('# nothing\n'), null)
  deepEqual(read('---\na: 1\n...\n'), { a: 1 })
})

test('parseYaml accepts one document, and empty documents after it', () => {
  for (const end of ['---', '---\n', '---\n# why\n', '...\n---\n', '---\n---\n', '--- ~\n']) {
    deepEqual(read(`a: 1\n${end}`), { a: 1 }, end)
  }
  equal(refusal('a: 1\n---\nb: 2\n').message, 'yaml: more than one document')
  equal(refusal('---\n---\nb: 2\n').message, 'yaml: more than one document')
  equal(refusal('---\n---\n---\nb: 2\n---\n').message, 'yaml: more than one document')
  ok(refusal('a: 1\n---\nb: [\n').message.startsWith('yaml: '))
})

test('parseYaml adds no line break to a block at the end of a text', () => {
  deepEqual(read('a: >\n  one\n  two'), { a: 'one two' })
  deepEqual(read('a: |\n  one\n  two'), { a: 'one\ntwo' })
  deepEqual(read('a: |\n  one\n  two\n'), { a: 'one\ntwo\n' })
  deepEqual(read('a: |+\n  one\n\n'), { a: 'one\n\n' })
  deepEqual(read('a: |\n  one\nb: 2'), { a: 'one\n', b: 2 })
})

test('parseYaml accepts quoted texts and brackets whose lines are not indented', () => {
  deepEqual(read('a:\n  b: "one\ntwo"\nc: 3\n'), { a: { b: 'one two' }, c: 3 })
  deepEqual(read("a:\n  b: 'one\n\n two'\n"), { a: { b: 'one\ntwo' } })
  deepEqual(read('a:\n- b: "one\n# two\n"\n- c\n'), { a: [{ b: 'one # two ' }, 'c'] })
  deepEqual(read('a:\n  b: {c: 1,\nd: [2,\n3\n], e: "x\ny"\n}\n  f: 4\n'), {
    a: { b: { c: 1, d: [2, 3], e: 'x y' }, f: 4 },
  })
  for (const text of ['a: "one\n--- two"\n', 'a: "one\n... two"\n', 'a: {b: 1\n---\n}\n']) {
    ok(refusal(text).message.startsWith('yaml: line '), text)
  }
  ok(refusal('a: b\nc\n').message.startsWith('yaml: line '))
})

test('parseYaml parses plain scalars by the rules of YAML 1.1', () => {
  const values: Readonly<Record<string, Json>> = {
    yes: true,
    On: true,
    y: true,
    no: false,
    OFF: false,
    null: null,
    '~': null,
    '': null,
    '5': 5,
    '-5': -5,
    '+5': 5,
    '0755': 493,
    '0o17': 15,
    '0x1F': 31,
    '0b101': 5,
    '1_000': 1000,
    '08': 8,
    '1.5': 1.5,
    '.5': 0.5,
    '1e3': 1000,
    '2026-01-02': '2026-01-02',
    '1:30': '1:30',
    '1.2.3': '1.2.3',
    '-': '-',
    nope: 'nope',
    yEs: 'yEs',
  }
  for (const [text, value] of Object.entries(values)) {
    if (text !== '-') deepEqual(read(`a: ${text}\n`), { a: value }, text)
    deepEqual(read(`a: "${text}"\n`), { a: text })
    deepEqual(read(`a: !!str ${text === '-' ? '"-"' : text}\n`), { a: text })
  }
  deepEqual(read('{5: a, true: b, 1.5: c}'), { '5': 'a', true: 'b', '1.5': 'c' })
})

test('parseYaml resolves anchors and merges', () => {
  deepEqual(read('a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n'), {
    a: { b: 1 },
    c: { b: 1 },
    d: { b: 1, e: 2 },
  })
  deepEqual(read('a: &x {b: 1}\nd:\n  b: 5\n  <<: [*x, {c: 3}]\n'), {
    a: { b: 1 },
    d: { b: 5, c: 3 },
  })
  equal(refusal('a: *x').message, "yaml: unknown anchor 'x' referenced")
  equal(refusal('a: &x [*x]').message, 'yaml: an anchor contains itself')
  equal(
    refusal('a: &x 1\n<<: *x').message,
    'yaml: map merge requires map or sequence of maps as the value',
  )
})

test('parseYaml reports the line of a repeated name, and keeps the last value', () => {
  const { value, problems } = parseYaml(
    'metadata:\n  name: a\n  odd: 1\n  labels: {}\n  name: b\nreason: x\nreason: z\n',
  )
  deepEqual(value, { metadata: { odd: 1, labels: {}, name: 'b' }, reason: 'z' })
  deepEqual(problems, [
    'line 5: key "name" already set in map',
    'line 7: key "reason" already set in map',
  ])
})

test('parseYaml parses JSON within the limits of JSON', () => {
  const large = {
    note: 'x'.repeat(200_000),
    list: Array.from({ length: 9000 }, (_, index) => index),
  }
  deepEqual(read(JSON.stringify(large)), large)
  equal(parseYaml('{"a":1,"a":2}').duplicates.size, 1)
  deepEqual(read('{"a": yes}'), { a: true })
})

test('parseYaml treats names that objects inherit like any other', () => {
  const value = read('__proto__: {x: 1}\nconstructor: 2\n')
  deepEqual(Object.keys(value as object), ['__proto__', 'constructor'])
  equal(Object.getPrototypeOf(value), Object.prototype)
})

test('parseYaml reports the line of a syntax error', () => {
  ok(refusal('a: [b').message.startsWith('yaml: line 1: '))
  ok(refusal('a: 1\nb: "x\n').message.startsWith('yaml: line 3: '))
  equal(refusal('a: 1\n---\nb: 2\n').message, 'yaml: more than one document')
  equal(refusal('a: .inf').message, 'yaml: JSON cannot represent this number')
  equal(refusal('a: !!int x').message, 'yaml: cannot decode a scalar as !!int')
  equal(refusal('? {a: b}\n: c').message, 'yaml: a key must be a string')
  equal(refusal('a: b\n\tc: d\n').name, 'YamlSyntaxError')
})

test('parseYaml rejects a text that exceeds a limit, and suggests JSON', () => {
  const long = refusal(`a: ${'x'.repeat(70_000)}`)
  ok(long instanceof StatusError && long.code === 413)
  equal(
    long.message,
    'Request entity too large: limit is 65536 characters of YAML, send JSON for more',
  )
  const many = refusal('a: 1\n'.repeat(5000))
  ok(many instanceof StatusError && many.code === 413)
  equal(refusal('['.repeat(200)).message, 'yaml: exceeded max depth')
  equal(refusal('- '.repeat(200)).message, 'yaml: exceeded max depth')
  const bomb = ['a0: &a0 [x]']
  for (let level = 1; level < 12; level++) {
    bomb.push(`a${level}: &a${level} [${`*a${level - 1}, `.repeat(9)}]`)
  }
  equal(refusal(bomb.join('\n')).message, 'yaml: document contains excessive aliasing')
})

test('parseYaml handles any text of the maximum length quickly', () => {
  const length = 65_000
  const units = [
    '[',
    '{',
    '{a: ',
    '[a: ',
    '- ',
    '-\n',
    '? ',
    '?\n',
    ': ',
    'a: ',
    'a:\n',
    ']',
    '}',
    ',',
    '[]',
    '[{',
    '- [',
    '&a ',
    '- &a b\n',
    '! ',
    '!!str ',
    '#\n',
    '\t',
    '\n',
    '\r',
    ' ',
    '---\n',
    '...\n',
    '%YAML 1.2\n',
    '%a\n',
    '"',
    "'",
    'x',
    'a\n',
    'a \n',
    'a ',
    '|\n',
    '- |\n',
    'a: b: c\n',
    'a: 1\n b: 2\n',
    '"a" b\n',
    '\0',
    '\ufeff',
    '😀',
    '<<: *a\n',
    '@',
    '`',
    '%',
    '- a: ',
  ]
  const texts = units.flatMap((unit) =>
    [length, 4000, 1400].map((size) => unit.repeat(size / unit.length)),
  )
  texts.push(
    `"${'\\q'.repeat(length / 2)}"`,
    `"${'a\n\n'.repeat(length / 3)}"`,
    `a: >\n${' x\n\n'.repeat(length / 4)}`,
  )
  texts.push(
    `${'k'.repeat(length)}: 1`,
    `{${'k\n'.repeat(length / 2)}: 1}`,
    `a: |9\n${' x\n'.repeat(length / 3)}`,
  )
  for (const text of texts) {
    const start = process.threadCpuUsage()
    try {
      parseYaml(text)
    } catch (error) {
      ok(error instanceof YamlSyntaxError || error instanceof StatusError, String(error))
    }
    // Five times the measured time. Without the limits the library takes seconds.
    ok(
      process.threadCpuUsage(start).user < 150_000,
      `${JSON.stringify(text.slice(0, 12))} took long`,
    )
  }
})

test('yamlOf sorts names and formats a tree as Go does', () => {
  const tree = {
    message:
      'only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
    metadata: {},
    items: [{ name: 'b', list: ['x', ['y', 'z'], [], {}] }, 'c'],
    count: 3,
    eventTime: '2026-01-02T03:04:05.678901Z',
    nothing: null,
    yes: true,
    a10: 'null',
    a9: '5',
    'f:x': { '.': {} },
  }
  equal(
    yamlOf(tree),
    `a9: "5"
a10: "null"
count: 3
eventTime: "2026-01-02T03:04:05.678901Z"
f:x:
  .: {}
items:
- list:
  - x
  - - "y"
    - z
  - []
  - {}
  name: b
- c
message: 'only the following media types are accepted: application/json;stream=watch,
  application/vnd.kubernetes.protobuf;stream=watch'
metadata: {}
nothing: null
"yes": true
`,
  )
})

test('yamlOf writes strings so that a parser returns the same strings', () => {
  const texts: Readonly<Record<string, string>> = {
    plain: 'plain',
    '': '""',
    yes: '"yes"',
    '1e3': '"1e3"',
    '1:30': '"1:30"',
    '<<': '"<<"',
    'a: b': "'a: b'",
    "it's": "it's",
    "'it": "'''it'",
    ' a': "' a'",
    'a #b': "'a #b'",
    '- a': "'- a'",
    '-a': '-a',
    '[a': "'[a'",
    'a\tb': '"a\\tb"',
    '😀': '"\\U0001F600"',
    é: 'é',
    'a\nb': '|-\n  a\n  b',
    'a\nb\n': '|\n  a\n  b',
    'a\n\n': '|+\n  a\n',
    ' a\nb': '|2-\n   a\n  b',
    'a \nb': '"a \\nb"',
  }
  for (const [text, written] of Object.entries(texts)) equal(yamlOf({ x: text }), `x: ${written}\n`)
})

test('yamlOf folds long texts, which a parser restores', () => {
  const sentence = 'word '.repeat(60).trim()
  for (const text of [
    sentence,
    `${sentence}: x`,
    `${sentence}\t`,
    `a  ${sentence}  b`,
    '\ud83d\ude00'.repeat(50),
  ]) {
    deepEqual(read(yamlOf({ deep: { note: text } })), { deep: { note: text } })
  }
  ok(
    yamlOf({ note: sentence })
      .split('\n')
      .every((line) => line.length <= 90),
  )
})

test('yamlOf writes YAML that parseYaml and another parser read as the same tree', () => {
  const piece = fc.constantFrom(
    ...`ab1 -:#'"{}[],&*!|>%@\`?~<=.+_é😀\n\t\r\0`,
    '\u2028',
    '\ufeff',
    '\x85',
    ': ',
    ' #',
    'yes',
    '---',
  )
  const text = fc.oneof(
    fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('')),
    fc.string(),
  )
  const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      text,
      fc.oneof(fc.constant(null), fc.boolean(), fc.integer()),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(text, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }))
  fc.assert(
    fc.property(fc.record({ a: tree }), (generated) => {
      const value: Json = JSON.parse(JSON.stringify(generated))
      const written = yamlOf(value)
      deepEqual(read(written), value)
      deepEqual(parse(written), value)
    }),
    { numRuns: 500 },
  )
})
