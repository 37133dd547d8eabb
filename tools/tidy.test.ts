/**
 * Rules that a compiler does not check, as tests: which room may import which, and that
 * documents point at things that exist.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob, normalize, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { unknownCommands } from './npm-commands.ts'
import { BENCHMARKS, NEEDS, SUITES } from './suites.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Rule {
  /** Rooms, and single files of rooms, as `src/http/exchange.ts`; `src/all` for all of a tree. */
  readonly imports: readonly string[]
  readonly packages: readonly string[]
}

/** The program and the page. Neither imports the other. */
const TREES = ['src', 'ui/src']
/** Which nothing imports. Those outside of a room may import everything of their tree. */
const ENTRIES: ReadonlySet<string> = new Set([
  'src/main.ts',
  'src/history/worker.ts',
  'ui/src/main.tsx',
])
/** Which tests of every room may import. */
const TEST_PACKAGES: ReadonlySet<string> = new Set([
  'fast-check',
  'hyparquet',
  'hyparquet-compressors',
])
/** The tables of rooms in ARCHITECTURE.md, by room. */
const RULES: ReadonlyMap<string, Rule> = readRules(read('ARCHITECTURE.md'))

const VAGUE_NAMES = /^(utils?|helpers?|common|types|index|manager|impl|misc)\./

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)))
const isCode = (file: string): boolean => /(?<!\.d)\.tsx?$/.test(file)
const sources = files.filter(
  (file) => treeOf(file) !== undefined && (isCode(file) || file.endsWith('.css')),
)
const isForTests = (file: string): boolean => /\.(test|fixture)\.tsx?$/.test(file)
const nonTests = sources.filter((file) => !isForTests(file))

test('rooms: a file imports only what the row of its room allows', () => {
  const wrong: string[] = []
  for (const file of sources) {
    const rule = RULES.get(roomOf(file))
    if (rule === undefined) continue
    for (const target of importsOf(file)) {
      if (!isAllowed(file, target, rule)) wrong.push(`${file} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('rooms: every folder of a tree is in its table, and every row is a folder', () => {
  const rooms = new Set(sources.filter((file) => !ENTRIES.has(file)).map(roomOf))
  assert.deepEqual([...rooms].sort(), [...RULES.keys()].sort())
})

test('rooms: the table has no cycle', () => {
  assert.deepEqual(cycleOf(new Map([...RULES].map(([room, { imports }]) => [room, imports]))), [])
})

test('rooms: the folders inside a room have no cycle', () => {
  // A folder and the root of its room may import each other; siblings one way only.
  const folders = new Map<string, Set<string>>()
  for (const file of nonTests) {
    const from = dirname(file)
    for (const target of importsOf(file)) {
      const to = dirname(target)
      if (from === to || dirname(from) !== dirname(to) || TREES.includes(dirname(from))) continue
      folders.set(from, (folders.get(from) ?? new Set()).add(to))
    }
  }
  assert.deepEqual(cycleOf(folders), [])
})

test('files: no import cycle', () => {
  assert.deepEqual(cycleOf(new Map(nonTests.map((file) => [file, importsOf(file)]))), [])
})

test('files: every test is run by CI or nightly', () => {
  const globs = SUITES.filter(({ ci, nightly }) => ci !== undefined || nightly).flatMap(
    (suite) => suite.files ?? [],
  )
  const isRun = (file: string): boolean => globs.some((glob) => matchesGlob(file, glob))
  const tests = files.filter((file) => file.endsWith('.test.ts'))
  assert.deepEqual(
    tests.filter((file) => !isRun(file)),
    [],
  )
})

test('suites: every one has its own name, and its files and programs exist', () => {
  for (const table of [SUITES, BENCHMARKS]) {
    const names = table.map(({ name }) => name)
    assert.deepEqual(names, [...new Set(names)])
  }
  const programs = [
    ...SUITES.flatMap((suite) => suite.programs ?? []),
    ...BENCHMARKS.map(({ program }) => program),
    ...Object.values(NEEDS).flat(),
  ]
  const paths = programs.flatMap((program) => program.filter((word) => word.endsWith('.ts')))
  const missing = paths.filter((path) => !files.includes(path))
  assert.deepEqual(missing, [])
  for (const { name, files: globs = [] } of SUITES) {
    const empty = globs.filter((glob) => !files.some((file) => matchesGlob(file, glob)))
    assert.deepEqual(empty, [], name)
  }
})

test('commands: every npm command that a file names exists', () => {
  const wrong = files
    .filter((file) => /\.(md|tsx?|cjs|json|yml|yaml|proto|sh)$|\/(run|Containerfile)$/.test(file))
    .filter((file) => file !== 'tools/npm-commands.test.ts')
    .flatMap((file) => unknownCommands(read(file)).map((command) => `${file} names ${command}`))
  assert.deepEqual(wrong, [])
})

// A root hook of one file runs for the tests of all files. Only `after` may be one: it cleans up.
test('files: a unit test has its hooks inside a describe, since all unit tests share a process', () => {
  const unitTests = files.filter((file) => /^(src|ui|tools)\/.*\.test\.ts$/.test(file))
  const wrong = unitTests.filter((file) => /^(before|beforeEach|afterEach)\(/m.test(read(file)))
  assert.deepEqual(wrong, [])
})

test('files: no file imports a .test.ts file', () => {
  const imported = files
    .filter(isCode)
    .flatMap((file) => importsOf(file).filter((target) => /\.test\.tsx?$/.test(target)))
  assert.deepEqual(imported, [])
})

test('files: each is named for its content', () => {
  const vague = files.filter((file) => VAGUE_NAMES.test(file.split('/').at(-1) ?? ''))
  assert.deepEqual(vague, [])
})

test('files: every source is imported by another, or is an entry point', () => {
  const used = new Set(nonTests.flatMap(importsOf))
  const unused = nonTests.filter((file) => !ENTRIES.has(file) && !used.has(file))
  assert.deepEqual(unused, [])
})

test('documents: the paths of sources and tests in them exist', () => {
  const broken: string[] = []
  for (const file of files.filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')) {
    for (const [, path = ''] of read(file).matchAll(
      /[` ]((?:src|test|tools|bench|ui\/src)\/[\w./-]+\w)/g,
    )) {
      if (!existsSync(join(root, path))) broken.push(`${file} names ${path}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('documents: the test names in their commands exist', () => {
  const wrong: string[] = []
  for (const file of files.filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')) {
    for (const [, pattern = '', path = ''] of read(file).matchAll(
      /--test-name-pattern='([^']+)' ([\w./-]+)/g,
    )) {
      if (!read(path).includes(pattern)) wrong.push(`${file}: no "${pattern}" in ${path}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('lock file: every dependency of a package is in it', () => {
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

test('lock file: every package has an integrity hash, and none an address', () => {
  const { packages } = JSON.parse(read('package-lock.json'))
  const wrong = Object.entries<Record<string, string>>(packages)
    .filter(([path]) => path !== '')
    .filter(([, { integrity = '', resolved }]) => {
      return !/^sha512-[\w+/]{86}==$/.test(integrity) || resolved !== undefined
    })
    .map(([path]) => path)
  assert.deepEqual(wrong, [])
})

/** Reads the rows of the tables of rooms: `| room | what it does | may import | packages |`. */
function readRules(page: string): ReadonlyMap<string, Rule> {
  const rules = new Map<string, Rule>()
  for (const line of page.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim())
    const [, room] = /^`((?:ui\/)?src\/[\w/]+)`$/.exec(cells[1] ?? '') ?? []
    if (room === undefined || cells.length !== 6) continue
    const names = cells[3] === 'all' ? ['all'] : namesIn(cells[3])
    const imports = names.map((name) => `${treeOf(room)}/${name}`)
    rules.set(room, { imports, packages: namesIn(cells[4]) })
  }
  return rules
}

function namesIn(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

function treeOf(file: string): string | undefined {
  return TREES.find((tree) => file.startsWith(`${tree}/`))
}

/** The most specific row that contains the file: `src/http/tls/x.ts` is in room `src/http`. */
function roomOf(file: string): string {
  let folder = dirname(file)
  while (folder !== '.' && !RULES.has(folder)) folder = dirname(folder)
  return folder
}

/** The names along one cycle of a graph; empty when there is none. */
function cycleOf(graph: ReadonlyMap<string, Iterable<string>>): readonly string[] {
  const finished = new Set<string>()
  const path: string[] = []
  const visit = (node: string): readonly string[] => {
    if (finished.has(node)) return []
    const at = path.indexOf(node)
    if (at !== -1) return [...path.slice(at), node]
    path.push(node)
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next)
      if (cycle.length > 0) return cycle
    }
    path.pop()
    finished.add(node)
    return []
  }
  for (const node of graph.keys()) {
    const cycle = visit(node)
    if (cycle.length > 0) return cycle
  }
  return []
}

/** Files as paths from the root, packages by their names. */
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

function isAllowed(file: string, target: string, rule: Rule): boolean {
  if (target.startsWith('node:')) return treeOf(file) === 'src' || isForTests(file)
  if (target.startsWith('test/')) return isForTests(file) && rule.imports.includes('src/all')
  const tree = treeOf(target)
  if (tree === undefined) {
    const name = target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/')
    return rule.packages.includes(name) || (isForTests(file) && TEST_PACKAGES.has(name))
  }
  const room = roomOf(target)
  if (room === roomOf(file)) return true
  return rule.imports.some(
    (allowed) => allowed === `${tree}/all` || target === allowed || room === allowed,
  )
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
