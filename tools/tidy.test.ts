/**
 * The house rules that a compiler does not know, as tests: which room may use which, how long a
 * file may get, and that documents point at things that exist.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What storage shows of itself: the promise and the words it is made in, nothing of how it is kept. */
const STORED = [
  'storage/storage.ts',
  'storage/errors.ts',
  'storage/frames.ts',
  'storage/resource-version.ts',
  'storage/stored-form.ts',
]

/** Which rooms a room may import, and which packages. `a/b` allows that one file of room `a`. */
const RULES: Readonly<Record<string, { rooms: readonly string[]; packages: readonly string[] }>> = {
  lib: { rooms: [], packages: ['pino'] },
  api: { rooms: ['lib'], packages: [] },
  http: { rooms: ['lib'], packages: ['@peculiar/x509', 'reflect-metadata'] },
  etcd: { rooms: ['lib'], packages: ['@grpc/grpc-js', '@bufbuild/protobuf'] },
  codec: { rooms: [...STORED, 'storage/json-scan.ts', 'api', 'lib'], packages: ['yaml'] },
  storage: { rooms: ['etcd', 'api', 'lib'], packages: ['@prometheus-io/client'] },
  cache: {
    rooms: [...STORED, 'lib'],
    packages: [],
  },
  retention: { rooms: ['storage', 'cache', 'etcd', 'api', 'lib'], packages: [] },
  gate: {
    rooms: ['http/exchange.ts', 'codec/yaml-documents.ts', 'api', 'lib'],
    packages: ['jose'],
  },
  health: { rooms: ['http/exchange.ts', 'lib'], packages: ['@prometheus-io/client'] },
  registry: { rooms: [...STORED, 'codec', 'api', 'lib'], packages: [] },
  endpoints: {
    rooms: ['gate', 'registry', 'codec', ...STORED, 'http/exchange.ts', 'api', 'lib'],
    packages: [],
  },
  options: { rooms: ['lib'], packages: [] },
  dev: { rooms: ['lib'], packages: [] },
}

const FILE_LINES_MAX = 400
const VAGUE_NAMES = /^(utils?|helpers?|common|types|index|manager|impl|misc)\./

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)))
const sources = files.filter((file) => file.startsWith('src/') && file.endsWith('.ts'))
const isTestSuite = (file: string): boolean => /(\.test|-contract)\.ts$/.test(file)
const isGenerated = (file: string): boolean => file.endsWith('_pb.ts')

test('rooms: each imports only what it may', () => {
  const wrong: string[] = []
  for (const file of sources) {
    const room = roomOf(file)
    if (room === undefined) continue
    const rule = RULES[room]
    assert.ok(rule, `room ${room} has no rule here`)
    const isTest = file.endsWith('.test.ts')
    for (const target of importsOf(file)) {
      if (!isAllowed({ file, target, rule, isTest })) wrong.push(`${file} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('rooms: a rule for each room that exists, and no others', () => {
  const rooms = new Set(sources.map(roomOf).filter((room) => room !== undefined))
  assert.deepEqual([...rooms].sort(), Object.keys(RULES).sort())
})

test('rooms: nobody imports the wiring', () => {
  const wiring = new Set(sources.filter((file) => roomOf(file) === undefined))
  const wrong = sources
    .filter((file) => roomOf(file) !== undefined)
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => wiring.has(target))
        .map((target) => `${file} imports ${target}`),
    )
  assert.deepEqual(wrong, [])
})

test(`files: none longer than ${FILE_LINES_MAX} lines`, () => {
  const long = files
    .filter((file) => file.endsWith('.ts') && !isGenerated(file) && !isTestSuite(file))
    .map((file) => ({ file, lines: read(file).split('\n').length }))
    .filter(({ lines }) => lines > FILE_LINES_MAX)
  assert.deepEqual(long, [])
})

test('files: named for what is inside', () => {
  const vague = files.filter((file) => VAGUE_NAMES.test(file.split('/').at(-1) ?? ''))
  assert.deepEqual(vague, [])
})

test('files: every source is used by another, or is where the program starts', () => {
  const used = new Set(files.filter((file) => file.endsWith('.ts')).flatMap(importsOf))
  const unused = sources.filter(
    (file) => !file.endsWith('.test.ts') && file !== 'src/main.ts' && !used.has(file),
  )
  assert.deepEqual(unused, [])
})

test('documents: links lead somewhere', () => {
  const broken: string[] = []
  for (const file of files.filter((name) => name.endsWith('.md'))) {
    for (const [, link = ''] of read(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:|^#/.test(link)) continue
      const target = join(root, dirname(file), link.replace(/#.*$/, ''))
      if (!existsSync(target)) broken.push(`${file} -> ${link}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('documents: paths of sources and tests they name exist', () => {
  const broken: string[] = []
  for (const file of files.filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')) {
    for (const [, path = ''] of read(file).matchAll(
      /[` ]((?:src|test|tools|bench)\/[\w./-]+\w)/g,
    )) {
      if (!existsSync(join(root, path))) broken.push(`${file} names ${path}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('lock file: every package that a package names is there', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  const known = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, '')))
  const missing = Object.values<Record<string, object>>(packages)
    .flatMap((entry) => [
      ...Object.keys(entry['dependencies'] ?? {}),
      ...Object.keys(entry['optionalDependencies'] ?? {}),
    ])
    .filter((name) => !known.has(name))
  assert.deepEqual(missing, [])
})

test('lock file: every package has a hash to hold it to, and none an address', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  const wrong = Object.entries<Record<string, string>>(packages)
    .filter(([path]) => path !== '')
    .filter(([, { integrity = '', resolved }]) => {
      return !/^sha512-[\w+/]{86}==$/.test(integrity) || resolved !== undefined
    })
    .map(([path]) => path)
  assert.deepEqual(wrong, [])
})

/** `src/http/peer.ts` is in room `http`; files directly under `src` are in none. */
function roomOf(file: string): string | undefined {
  const parts = file.split('/')
  return parts.length > 2 ? parts[1] : undefined
}

/** Files as paths from the root, packages as their names. */
function importsOf(file: string): readonly string[] {
  const found: string[] = []
  const text = read(file)
  for (const pattern of [
    /^\s*(?:import|export)\s[^'"`;]*?from\s+['"]([^'"]+)['"]/gms,
    /^\s*import\s+['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ]) {
    for (const [, target = ''] of text.matchAll(pattern)) found.push(target)
  }
  return found.map((target) =>
    target.startsWith('.') ? relative(root, normalize(join(root, dirname(file), target))) : target,
  )
}

function isAllowed(use: {
  readonly file: string
  readonly target: string
  readonly rule: { readonly rooms: readonly string[]; readonly packages: readonly string[] }
  readonly isTest: boolean
}): boolean {
  const { file, target, rule, isTest } = use
  if (target.startsWith('node:')) return true
  if (!target.startsWith('src/')) {
    const name = target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/')
    return rule.packages.includes(name) || (isTest && name === 'fast-check')
  }
  const room = roomOf(target)
  if (room === roomOf(file)) return true
  return rule.rooms.some((allowed) =>
    allowed.endsWith('.ts') ? target === `src/${allowed}` : room === allowed,
  )
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
