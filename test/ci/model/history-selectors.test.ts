/** Selectors as SQL select what they select in memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseFieldSelector } from '../../../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../../src/api/selectors/label-selector.ts'
import { MadeArchive, type MadeRow } from '../../../src/history/read/archive.fixture.ts'
import { rowFilter } from '../../../src/history/read/requires-sql.ts'
import { SqlValues } from '../../../src/history/read/sql-values.ts'
import { patternId, patternOf } from '../../../src/incidents/pattern.ts'
import { eventSelector } from '../../../src/registry/read/event-selector.ts'
import type { Requires } from '../../../src/storage/requires.ts'
import { versionOfChange } from '../../../src/storage/resource-version.ts'
import type { EventSelector } from '../../../src/storage/storage.ts'
import { StoredBody } from '../../../src/storage/stored-form.ts'

const WORDS = [
  '',
  'web',
  'web-0',
  'Web-0',
  'WEB-0 failed',
  'kiosk',
  '\u212aiosk',
  'istio',
  'Istio',
  'İstio',
  'xİ',
  'ΑΣ',
  'straße',
  'STRASSE',
  '日本',
  '\u{1f600}',
  '\u{ffff}',
  'a\ufffdb',
  "'; DROP TABLE events; --",
  "' OR 1=1 --",
  '$1',
  '%',
  '_',
  '\\',
  '"',
  "x' || 'y",
] as const

const word = fc.constantFrom(...WORDS)
const kind = fc.constantFrom('Pod', 'pod', 'POD', 'Node', '\u212aind', 'İng', '')
const UID = 'aaaaaaaa-0000-4000-8000-000000000000'
const uid = fc.constantFrom(UID, 'bbbbbbbb', '')
const reference = fc.record({
  kind,
  name: word,
  namespace: word,
  uid,
  apiVersion: word,
  resourceVersion: word,
  fieldPath: word,
})

const bodies = fc.record({
  reason: word,
  type: fc.constantFrom('Normal', 'Warning', ''),
  note: fc.oneof(
    word,
    fc.tuple(word, word).map((words) => words.join(' ')),
  ),
  action: word,
  reportingController: word,
  reportingInstance: word,
  regarding: reference,
  related: reference,
  deprecatedSource: fc.record({ component: word, host: word }),
  eventTime: fc.constantFrom('2026-01-01T00:00:01.000000Z', '2026-01-01T00:00:02.000000Z'),
})

const FIELDS = [
  'reason',
  'type',
  'action',
  'reportingController',
  'reportingInstance',
  'controller',
  'metadata.name',
  'metadata.namespace',
  'node',
  ...['regarding', 'related'].flatMap((side) =>
    ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
      (name) => `${side}.${name}`,
    ),
  ),
]

function escaped(text: string): string {
  return text.replaceAll(/[\\,=|*]/g, '\\$&')
}

/** A value of a selector, perhaps with a prefix, perhaps several. */
const value = fc
  .array(
    fc
      .tuple(fc.oneof(word, kind, uid), fc.boolean(), fc.nat({ max: 4 }))
      .map(([text, isPrefix, length]) => {
        const start = [...text].slice(0, length).join('')
        return isPrefix && start !== '' ? `${escaped(start)}*` : escaped(text)
      }),
    { minLength: 1, maxLength: 3 },
  )
  .map((values) => values.join('|'))

const operator = fc.constantFrom('=', '!=')
const object = fc
  .tuple(fc.constantFrom('Pod', 'node', 'po', '\u212aind', 'İng'), word, fc.boolean())
  .filter(([, name]) => name !== '' && !name.includes('/'))
  .map(([of, name, isPrefix]) => `${escaped(of)}/${escaped(name)}${isPrefix ? '*' : ''}`)

const term = fc.oneof(
  fc.tuple(fc.constantFrom(...FIELDS), operator, value).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('text', 'search'), operator, word, fc.nat({ max: 3 }))
    .map(
      ([label, sign, text, from]) => `${label}${sign}${escaped([...text].slice(from).join(''))}`,
    ),
  fc
    .tuple(
      fc.constantFrom('mentions', 'workload'),
      operator,
      fc.array(object, { minLength: 1, maxLength: 2 }),
    )
    .map(([label, sign, objects]) => `${label}${sign}${objects.join('|')}`),
  fc
    .tuple(
      fc.constant('mentions='),
      uid.filter((text) => text !== ''),
    )
    .map((parts) => parts.join('')),
  fc.tuple(operator, word).map(([sign, note]) => `pattern${sign}${patternId(patternOf(note))}`),
  fc.constantFrom('since=2026-01-01T00:00:02Z', 'until=2026-01-01T00:00:02Z'),
)

interface Case {
  readonly selector: EventSelector | undefined
  readonly text: string
}

/** Selectors that are a 400 are left out. */
const selectors: fc.Arbitrary<Case> = fc
  .tuple(fc.array(term, { maxLength: 4 }), fc.constantFrom('', '', '', 'app=web'))
  .map(([terms, labels]) => {
    const text = terms.join(',')
    try {
      return {
        text,
        selector: eventSelector(parseLabelSelector(labels), parseFieldSelector(text), 0),
      }
    } catch {
      return undefined
    }
  })
  .filter((made) => made !== undefined)

const rows: fc.Arbitrary<readonly MadeRow[]> = fc
  .array(
    fc.tuple(bodies, fc.constantFrom('a', 'a-b', 'b'), fc.constantFrom('web', 'x.1', '日本')),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((made) =>
    made.map(([body, namespace, name], index) => {
      const key = { cluster: 'local', namespace, name }
      const metadata = { name, namespace, uid: `uid-${index}`, labels: { app: 'web' } }
      const stored = new StoredBody({
        key,
        body: Buffer.from(JSON.stringify({ metadata, ...body })),
        versionOffset: '{"metadata":{'.length,
        version: versionOfChange(1, index),
        writtenAtMs: 1_000,
      })
      return { stored, date: '2026-01-01', again: false, sequence: 1, spans: [] }
    }),
  )

/** Other parts of the server require values without a field selector. */
function withoutFields(requires: Requires | undefined): Requires | undefined {
  if (requires === undefined) return undefined
  const { fields: _, isOfFields: __, ...others } = requires
  return others
}

test('SQL selects what a selector matches, each row once, and says when it selects more', async () => {
  await using archive = await MadeArchive.open()
  let exact = 0
  let selected = 0
  const property = fc.asyncProperty(
    rows,
    fc.array(selectors, { minLength: 1, maxLength: 8 }),
    fc.constantFrom(undefined, 'a', 'b'),
    fc.boolean(),
    async (made, cases, namespace, hasFields) => {
      const { path } = await archive.writeFile(made)
      for (const { selector, text } of cases) {
        const values = new SqlValues()
        const file = values.text(path)
        const requires = hasFields ? selector?.requires : withoutFields(selector?.requires)
        const { branches, isExact } = rowFilter({ requires, namespace }, values)
        const parts = branches.map(
          (where) => `SELECT uid FROM read_parquet(${file}) WHERE ${where}`,
        )
        const read = await values.read(archive.connection, parts.join(' UNION ALL '))
        const found = read.getRows().map(([one]) => String(one))
        const wanted = made
          .filter(({ stored }) => namespace === undefined || stored.key.namespace === namespace)
          .filter(({ stored }) => selector?.matches(stored) ?? true)
          .map(({ stored }) => stored.fields.uid)
        assert.deepEqual(new Set(found).size, found.length, `${text}: a row is in two branches`)
        assert.deepEqual(
          wanted.filter((one) => !found.includes(one)),
          [],
          `${text}: too few`,
        )
        if (isExact) assert.equal(found.length, wanted.length, `${text}: too many`)
        exact += Number(isExact)
        selected += found.length
      }
    },
  )
  await fc.assert(property, { numRuns: 150 })
  assert.ok(exact > 100, 'few selectors are exact')
  assert.ok(selected > 100, 'nothing is selected')
})
