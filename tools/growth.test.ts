/** Compares the table of what a client can make grow, in docs/explanation/security.md, with the sources. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as httpLimits from '../src/http/limits.ts'
import { DEFAULT_LEDGER_LIMITS } from '../src/lib/client-memory/ledger.ts'
import { limitFlags } from '../src/options/limit-flags.ts'
import { serverFlags } from '../src/options/options.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const HEADING = '## What a client can make grow'

interface Row {
  readonly what: string
  readonly figure: string
  readonly limits: readonly string[]
  readonly flags: readonly string[]
  readonly metrics: readonly string[]
  readonly tests: readonly string[]
}

const rows: readonly Row[] =
  readFileSync(join(root, 'docs/explanation/security.md'), 'utf8')
    .split(HEADING)[1]
    ?.split('\n## ')[0]
    ?.split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (what {2}|---)/.test(line))
    .map((line) => {
      const [, what = '', limits, named, metrics, tests] = line
        .split('|')
        .map((cell) => cell.trim())
      return {
        what,
        figure: limits ?? '',
        limits: quoted(limits),
        flags: quoted(named),
        metrics: quoted(metrics),
        tests: quoted(tests),
      }
    }) ?? assert.fail(`docs/explanation/security.md has no section "${HEADING}"`)

function quoted(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
}

const sources = execFileSync('git', ['ls-files', 'src/*.ts'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !file.endsWith('.test.ts'))
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n')

test('growth: the test of every row exists', () => {
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

/** Folders in which memory is kept for clients, or because of them. */
const ROOMS = [
  'src/api/selectors/label-selector.ts',
  'src/http/*.ts',
  'src/gate/*.ts',
  'src/endpoints/*.ts',
  'src/cache/*.ts',
  'src/codec/encoders/encoded-run-cache.ts',
  'src/lib/client-memory/ledger.ts',
  'src/lib/heavy-hitters.ts',
  'src/lib/client-memory/unidentified.ts',
  'src/registry/read/event-selector.ts',
  'src/registry/admission/*.ts',
  'src/registry/top-sources.ts',
  'src/tracing/*.ts',
]
/** Constants that limit something, by their names. */
const LIMIT =
  /^(?:export )?const ([A-Z][A-Z0-9_]*(?:_MAX|_SLOTS|_PER_USER|_PER_CALLER)|[a-z]\w*Max(?:Usual)?)\b/gm
/** Fields that hold collections; weak ones are collected with their keys. */
const COLLECTION = /^ {2}(?:readonly )?(#\w+)(?:: [^=\n]+)? = new (?:Map|Set)\b/gm

/** Findings that need no row, as `file.name` or the file for all of it, with the reason. */
const EXCLUDED: Readonly<Record<string, string>> = {
  'access-checks.#waiting': 'one for each check in progress',
  'arrivals.ADDRESSES_ASKED_MAX': 'the number of addresses searched for room',
  'audit-policy': 'from a file of the operator',
  'audit-policy-file': 'from a file of the operator',
  'authorities.AUTHORITIES_MAX': 'from a file of the operator',
  'authorities.FILE_BYTES_MAX': 'from a file of the operator',
  'bearer-token.REMARKS_LOGGED_MAX': 'about a file of the operator',
  'cluster-activity.spansMsMax': 'a time',
  'der.LENGTH_BYTES_MAX': 'of the encoding',
  'event-limits-file.FILE_BYTES_MAX': 'from a file of the operator',
  'event-limits-file.LIMITS_MAX': 'from a file of the operator',
  'event-limits-file.RATE_MAX': 'from a file of the operator',
  'fan-out.restMsMax': 'a time',
  'freshness.freshnessWaitMsMax': 'shorter than the request timeout',
  'issuer-keys': 'from the issuer',
  'label-selector.errorsMax': 'the errors in a response',
  'limits.FIRST_WAIT_MS_MAX': 'a time',
  'oidc-token': 'from the issuer and a file of the operator',
  'origins.#origins': 'from a file of the operator',
  'policy-fields': 'from files of the operator',
  'query-values.timerMsMax': 'of timers',
  'rbac-files': 'from files of the operator',
  'packed-changes.sharedBytesMax': 'of the shape of a chunk',
  'plain-notes': 'of the shape of JSON',
  'rbac-policy': 'from files of the operator',
  rbac: 'about files of the operator',
  'reflector.excessPauseMsMax': 'a time',
  'reflector.#unreadable': 'values in etcd that this server did not write',
  'refusal.#reasons': 'one for each reason',
  'request-tallies.#last': 'of words of this server: verbs',
  'request-tallies.#refused': 'of words of this server: verbs and reasons',
  'request-tallies.#series': 'of words of this server: verbs, resources and codes',
  'request-width.WIDTH_MAX': 'the cost of a list',
  'rule-set': 'from files of the operator',
  'service-account-token': 'from files of the operator',
  'services.#byResource': 'of the resources that this server has',
  'services.#roots': 'of the paths that this server has',
  'slabs.sharedBytesMax': 'of the shape of a slab',
  'slot-list.chunkMax': 'of the shape of a list',
  'slot-tree': 'of the shape of a tree',
  'slot-walks.batchMax': 'a number of steps',
  'summaries.#known': 'one for each set of fields',
  'token-file': 'from a file of the operator',
  'tracing-config': 'from a file of the operator',
  'otlp-exporter.EXPORT_MS_MAX': 'a time',
  'window-header.WAIT_MS_MAX': 'a time',
  'watch-feed.timerMsMax': 'of timers',
  'write-admission.RETRY_SECONDS_MAX': 'the Retry-After of a response',
  'stored-bytes.CHARGED_MS_MAX': 'a time',
  'stored-bytes.SILENT_MS_MAX': 'a time',
  'write-admission.MIRROR_WAIT_MS_MAX': 'a time',
  'webhook-authorizer.REASON_LENGTH_MAX': 'from a webhook',
}

/** As `file.name`. */
const found = execFileSync('git', ['ls-files', '--cached', '--others', ...ROOMS], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && !file.endsWith('.test.ts') && file !== 'src/http/limits.ts')
  .flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8')
    const names = [...source.matchAll(LIMIT), ...source.matchAll(COLLECTION)]
    return names.map(([, name]) => `${basename(file, '.ts')}.${name}`)
  })

const isExcluded = (name: string): boolean =>
  name in EXCLUDED || (name.split('.')[0] ?? '') in EXCLUDED

test('growth: every limit of HTTP, of memory and of the flags about limits has a row', () => {
  const { DEFAULT_LIMITS, ...constants } = httpLimits
  const known = rows.flatMap(({ limits }) => limits).filter((name) => !name.includes('.'))
  const wanted = [DEFAULT_LIMITS, constants, DEFAULT_LEDGER_LIMITS].flatMap(Object.keys)
  assert.deepEqual([...new Set(known)].toSorted(), wanted.toSorted())
  const shown = new Set(rows.flatMap((row) => row.flags))
  const missing = Object.values(limitFlags).filter(({ name }) => !shown.has(`--${name}`))
  assert.deepEqual(missing, [])
})

test('growth: every constant that limits and every collection has a row, or a reason for none', () => {
  const known = rows.flatMap(({ limits }) => limits).filter((name) => name.includes('.'))
  const wanted = new Set(found.filter((name) => !isExcluded(name)))
  assert.ok(wanted.size > 50, 'the expressions find something')
  assert.deepEqual([...new Set(known)].toSorted(), [...wanted].toSorted())
})

test('growth: every exclusion exists, and has no row', () => {
  const files = new Set(found.map((name) => name.split('.')[0]))
  const known = new Set(rows.flatMap(({ limits }) => limits))
  for (const name of Object.keys(EXCLUDED)) {
    assert.ok(found.includes(name) || files.has(name), `${name} does not exist`)
    assert.ok(!known.has(name), `${name} has a row`)
  }
})

test('growth: a row without its own limit has a flag or a figure', () => {
  for (const { what, limits, flags, figure } of rows)
    assert.ok(limits.length + flags.length > 0 || /\d/.test(figure), what)
})
