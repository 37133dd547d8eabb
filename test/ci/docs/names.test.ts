/** What the docs name exists: flags, metrics, files, reasons of errors, exit codes. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { devCommand, serverCommand } from '../../../src/options/commands.ts'
import { historyCommands } from '../../../src/options/history-commands.ts'
import { pages, pageText, root } from '../../../tools/pages.ts'

/** Pages about what was, not about what is. */
const manual = pages.filter((page) => page !== 'CHANGELOG.md')

/** Shorter parts of a message are in too many places to prove anything. */
const FRAGMENT_LENGTH_MIN = 12

/** Flags of other programs that pages name outside of commands. */
const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  etcd: [
    'advertise-client-urls',
    'election-timeout',
    'experimental-compact-hash-check-enabled',
    'experimental-initial-corrupt-check',
    'experimental-snapshot-catchup-entries',
    'feature-gates',
    'listen-client-urls',
    'listen-peer-urls',
    'max-request-bytes',
    'quota-backend-bytes',
    'snapshot-catchup-entries',
    'snapshot-count',
  ],
  etcdctl: ['cacert', 'cert', 'endpoints', 'key'],
  etcdutl: ['bump-revision', 'mark-compacted'],
  kubectl: [
    'all',
    'as',
    'certificate-authority',
    'chunk-size',
    'field-selector',
    'for',
    'force-conflicts',
    'server',
    'sort-by',
    'validate',
    'watch',
  ],
  'kube-apiserver': ['cors-allowed-origins', 'enable-aggregator-routing', 'etcd-servers-overrides'],
  node: [
    'cpu-prof',
    'heap-growing-percent',
    'inspect',
    'max-old-space-size',
    'max-semi-space-size',
  ],
  npm: ['include'],
  helm: ['atomic', 'reuse-values', 'hide-secret', 'rollback-on-failure', 'set'],
  alloy: ['storage'],
  'oauth2-proxy': [
    'allowed-group',
    'cookie-samesite',
    'pass-authorization-header',
    'redirect-url',
    'reverse-proxy',
    'upstream',
  ],
}

test('documented flags exist', () => {
  const own = [serverCommand, devCommand, ...historyCommands].flatMap(({ flags }) =>
    Object.values(flags).map(({ name }) => name),
  )
  const known = new Set([...own, ...Object.values(FOREIGN).flat(), 'help', 'version'])
  const unknown = inManual(/`--([a-z][a-z0-9-]*)(?:[= ][^`]*)?`/g).filter(
    ({ name }) => !known.has(name),
  )
  assert.deepEqual(unknown, [])
})

test('documented metrics exist', () => {
  const text = execFileSync('git', ['grep', '-hoE', 'tidings_[a-z_]+', '--', 'src'], {
    cwd: root,
    encoding: 'utf8',
  })
  const known = new Set(text.split('\n'))
  const unknown = named(/\b(tidings_[a-z][a-z_]*[a-z])\b/g).filter(
    ({ name }) => !known.has(name) && !known.has(name.replace(/_(bucket|count|sum)$/, '')),
  )
  assert.deepEqual(unknown, [])
})

test('documented files exist', () => {
  const missing = named(/`((?:deploy|monitoring|charts|docs|\.github)\/[\w./-]*\w)`/g).filter(
    ({ name }) => !existsSync(join(root, name)),
  )
  assert.deepEqual(missing, [])
})

test('docs/reference/errors.md has every reason, and docs/reference/process.md every exit code', () => {
  const status = readFileSync(join(root, 'src/api/status.ts'), 'utf8')
  const [, table = ''] = /const CODES = \{\n([\s\S]*?)\n\}/.exec(status) ?? []
  const reasons = [...table.matchAll(/(\w+): (\d+)/g)].map(([, name, code]) => `${code} ${name}`)
  const rows = [...pageText('docs/reference/errors.md').matchAll(/^\| (\d+) +\| `(\w+)` /gm)]
  assert.deepEqual(rows.map(([, code, name]) => `${code} ${name}`).sort(), reasons.sort())

  const main = readFileSync(join(root, 'src/main.ts'), 'utf8')
  const codes = [...main.matchAll(/^const EXIT_\w+ = (\d+)/gm)].map(([, code]) => code)
  const shown = [...pageText('docs/reference/process.md').matchAll(/^\| (\d+) +\|/gm)]
  assert.deepEqual(shown.map(([, code]) => code).sort(), codes.sort())
})

test('the messages in docs/reference/errors.md are those of the program', () => {
  const [, table = ''] = pageText('docs/reference/errors.md').split('\n## Messages\n')
  const sources = execFileSync('git', ['grep', '-h', '', '--', 'src/*.ts'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  const fragments = [...(table.split('\nMessages without')[0] ?? '').matchAll(/^\| `([^`]+)`/gm)]
    .flatMap(([, message = '']) => message.split(/…|; /))
    .map((text) => text.replaceAll(/^[^\w(]+|[^\w)]+$/g, ''))
    .filter((text) => text.length >= FRAGMENT_LENGTH_MIN)
  assert.ok(fragments.length > 15)
  const unknown = fragments.filter((text) => !sources.includes(text))
  assert.deepEqual(unknown, [])
})

test('docs/reference/files.md has every flag that takes a file', () => {
  const flags = Object.values(serverCommand.flags)
    .map(({ name }) => name)
    .filter((name) => /file$|-path$|cert-dir$/.test(name))
  const page = pageText('docs/reference/files.md')
  assert.deepEqual(
    flags.filter((name) => !page.includes(`\`--${name}\``)),
    [],
  )
})

/** Leaves out the page in which `--name` stands for a name, and pages about our own tools. */
function inManual(pattern: RegExp): ReturnType<typeof named> {
  const others = ['RELEASING.md', 'docs/reference/flags.md', 'docs/explanation/simulation.md']
  return named(pattern).filter(({ page }) => !others.includes(page) && !page.startsWith('test/'))
}

function named(pattern: RegExp): readonly { readonly page: string; readonly name: string }[] {
  return manual.flatMap((page) =>
    [...pageText(page).matchAll(pattern)].map(([, name = '']) => ({ page, name })),
  )
}
