/** Holds the table of what a client can make grow, in docs/security.md, to the sources. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as httpLimits from '../src/http/limits.ts'
import { DEFAULT_LEDGER_LIMITS } from '../src/lib/ledger.ts'
import { limitFlags } from '../src/options/limit-flags.ts'
import { serverFlags } from '../src/options/options.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const HEADING = '## What a client can make grow'

interface Row {
  readonly what: string
  readonly limits: readonly string[]
  readonly flags: readonly string[]
  readonly metrics: readonly string[]
  readonly tests: readonly string[]
}

const rows: readonly Row[] =
  readFileSync(join(root, 'docs/security.md'), 'utf8')
    .split(HEADING)[1]
    ?.split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (what {2}|---)/.test(line))
    .map((line) => {
      const [, what = '', limits, named, metrics, tests] = line
        .split('|')
        .map((cell) => cell.trim())
      return {
        what,
        limits: quoted(limits),
        flags: quoted(named),
        metrics: quoted(metrics),
        tests: quoted(tests),
      }
    }) ?? assert.fail(`docs/security.md has no section "${HEADING}"`)

function quoted(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
}

const sources = execFileSync('git', ['ls-files', 'src/*.ts'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !file.endsWith('.test.ts'))
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n')

test('growth: every row has a test that exists', () => {
  assert.ok(rows.length > 20)
  for (const { what, tests } of rows) {
    assert.ok(tests.length > 0, what)
    for (const file of tests) assert.ok(existsSync(join(root, file)), `${what}: ${file}`)
  }
})

test('growth: every flag and every metric of a row exists', () => {
  const names = new Set(Object.values(serverFlags).map(({ name }) => `--${name}`))
  for (const row of rows) {
    for (const flag of row.flags) assert.ok(names.has(flag), `${row.what}: ${flag}`)
    for (const metric of row.metrics) {
      assert.ok(sources.includes(`'${metric}'`), `${row.what}: ${metric}`)
    }
  }
})

test('growth: every limit of HTTP, of memory and of the flags about limits has a row', () => {
  const { DEFAULT_LIMITS, ...constants } = httpLimits
  const known = new Set(rows.flatMap(({ limits }) => limits))
  const wanted = [DEFAULT_LIMITS, constants, DEFAULT_LEDGER_LIMITS].flatMap(Object.keys)
  assert.deepEqual([...known].toSorted(), wanted.toSorted())
  const shown = new Set(rows.flatMap((row) => row.flags))
  const missing = Object.values(limitFlags).filter(({ name }) => !shown.has(`--${name}`))
  assert.deepEqual(missing, [])
})
