/**
 * Checks that every value of charts/tidings has a comment and is in its schema, and that the schema
 * has no others. What the chart renders is tested by test/ci/chart.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { chartValues, withVersion } from './chart-docs.ts'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
}

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const schema: Schema = JSON.parse(read('charts/tidings/values.schema.json'))
const values = chartValues()
/** Values of Helm itself. */
const NOT_OURS = ['global']

test('chart: every value has a comment that says what it is', () => {
  assert.ok(values.length > 100, `only ${values.length} values were found`)
  const bare = values.filter(({ comment }) => comment === '').map(({ path }) => path)
  assert.deepEqual(bare, [])
})

test('chart: a value without a comment is found', () => {
  const found = chartValues('# About.\n\n# One.\none: 1\ntwo:\n  # Three.\n  three: 3\n  four: 4\n')
  assert.deepEqual(
    found.map(({ path, comment }) => [path, comment]),
    [
      ['one', 'One.'],
      ['two', ''],
      ['two.three', 'Three.'],
      ['two.four', ''],
    ],
  )
})

test('chart: every value is in the schema', () => {
  const missing = values.filter(({ path }) => schemaOf(path) === undefined)
  assert.deepEqual(
    missing.map(({ path }) => path),
    [],
  )
})

test('chart: every value of the schema has a default and a comment', () => {
  const known = new Set(values.map(({ path }) => path))
  const described = (path: string): boolean =>
    // A part of a value that is described as a whole, such as a probe.
    known.has(path) || (path.includes('.') && known.has(parentOf(path)) && !hasOwn(parentOf(path)))
  const unknown = pathsOf(schema, '').filter((path) => !described(path))
  assert.deepEqual(
    unknown.filter((path) => !NOT_OURS.includes(path)),
    [],
  )
})

test('chart: a misspelt value is refused wherever values have names', () => {
  const open = ['', ...values.map(({ path }) => path)].filter((path) => {
    const found = schemaOf(path)
    return found?.properties !== undefined && found.additionalProperties !== false
  })
  assert.deepEqual(open, [])
})

test('chart: another version is written wherever the old one is', () => {
  const text = `version: 0.1.0
appVersion: 0.1.0
kubeVersion: ">=1.27.0-0"
app.kubernetes.io/version: "0.1.0"
newTag: 0.1.0
image: localhost/tidings:0.1.0, registry.example.com/etcd:3.5.30
release/tidings-0.1.0-linux-x64.oci.tar
`
  const next = withVersion(text, '0.2.0-rc.1')
  assert.equal(next, text.replaceAll('0.1.0', '0.2.0-rc.1'))
  assert.equal(withVersion(next, '0.2.0'), text.replaceAll('0.1.0', '0.2.0'))
})

function schemaOf(path: string): Schema | undefined {
  if (path === '') return schema
  return path
    .split('.')
    .reduce<Schema | undefined>((parent, name) => parent?.properties?.[name], schema)
}

function pathsOf({ properties = {} }: Schema, prefix: string): readonly string[] {
  return Object.entries(properties).flatMap(([name, each]) => [
    `${prefix}${name}`,
    ...pathsOf(each, `${prefix}${name}.`),
  ])
}

/** Whether values below this one are described by themselves. */
function hasOwn(path: string): boolean {
  return values.some((value) => value.path.startsWith(`${path}.`))
}

function parentOf(path: string): string {
  const parent = path.slice(0, path.lastIndexOf('.'))
  const isKnown = values.some((value) => value.path === parent)
  return isKnown || !parent.includes('.') ? parent : parentOf(parent)
}
