/**
 * Makes a release: `npm run release -- 0.2.0 --ci .ci/run`, or with `--dry-run` in a temporary
 * clone. RELEASING.md has the whole procedure.
 *
 * Each step looks at what is there, so that a release that failed can be repeated: a commit or a
 * tag that exists is not made again. Nothing is pushed.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { generatedDocs } from '../gen-docs.ts'
import { unreleasedEntries, withRelease } from './changelog.ts'
import { parseVersion, releaseOf, versionsAfter } from './semver.ts'

const CHANGELOG = 'CHANGELOG.md'
const CHART = 'charts/tidings/Chart.yaml'
const RECORDED = 'test/releases'
const PICTURES = 'docs/images'
const PREVIOUS = `${RECORDED}/previous.json`
/** All that a release changes. */
const CHANGED = [
  'package.json',
  'package-lock.json',
  CHANGELOG,
  CHART,
  RECORDED,
  PICTURES,
  ...generatedDocs.map(({ path }) => path),
]
const USAGE = `npm run release -- <version> --ci <command> [--dry-run]

  --ci <command>   checks the commit before anything is changed: .ci/run. If CI has passed
                   for this commit elsewhere, "true"
  --dry-run        does everything in a temporary clone, without CI, and shows it`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ci: { type: 'string' }, 'dry-run': { type: 'boolean', default: false } },
})
/** The checkout that npm runs this in. */
const root = process.cwd()
const [version = ''] = positionals
const tag = `v${version}`
const subject = `Release ${version}`

try {
  if (version === '') throw new Error(USAGE)
  if (values['dry-run']) dryRun()
  else release(values.ci)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

function release(ci: string | undefined): void {
  const isCommitted = git('log', '-1', '--format=%s') === subject
  const problems = isCommitted ? problemsOfTree() : [...problemsOfTree(), ...problemsOfVersion()]
  if (ci === undefined) problems.push('--ci is missing: the command that checks this commit')
  if (problems.length > 0) throw new Error(`Nothing was changed.\n- ${problems.join('\n- ')}`)
  if (isCommitted) print(`there is a commit "${subject}": going on after it`)
  else {
    const head = git('rev-parse', 'HEAD')
    run('CI', ci ?? '')
    // CI takes long enough for somebody to edit, commit or switch.
    const since = problemsOfTree()
    if (git('rev-parse', 'HEAD') !== head) since.push('this is not the commit that CI has checked')
    if (since.length > 0) throw new Error(`Nothing was changed.\n- ${since.join('\n- ')}`)
    commitVersion()
  }
  makeTag()
  run('artefacts', 'npm run --silent release:artefacts')
  print(`\n${tag} is ready in release/. To publish it: git push --atomic origin HEAD ${tag}`)
}

function problemsOfTree(): string[] {
  const branch = git('branch', '--show-current')
  const line = `release-${version.split('.').slice(0, 2).join('.')}`
  const isAllowed = branch === 'main' || branch === line
  return [
    ...(isAllowed
      ? []
      : [`this is ${branch || 'no branch'}: releases are made on main or ${line}`]),
    ...(git('status', '--porcelain') === '' ? [] : ['the tree has changes that are not committed']),
  ]
}

function problemsOfVersion(): string[] {
  const problems: string[] = []
  const wanted = parseVersion(version)
  const allowed = allowedVersions()
  if (wanted === undefined || !allowed.includes(releaseOf(wanted))) {
    problems.push(`${version} is not the next version: ${allowed.join(', ')}`)
  }
  if (unreleasedEntries(read(CHANGELOG)) === '') problems.push(`${CHANGELOG} has no entries`)
  if (git('tag', '--list', tag) !== '') problems.push(`${tag} exists, on another commit`)
  return problems
}

/** After the newest tag; without one, the version that package.json has. */
function allowedVersions(): readonly string[] {
  const newest = git('tag', '--merged', 'HEAD', '--list', 'v*', '--sort=-version:refname')
    .split('\n')
    .flatMap((name) => parseVersion(name.slice(1)) ?? [])[0]
  return newest === undefined ? [JSON.parse(read('package.json')).version] : versionsAfter(newest)
}

/** One commit with everything that names the version, and the data that this version stores. */
function commitVersion(): void {
  print(`\n== version ${version}`)
  const paths = CHANGED.filter((path) => existsSync(join(root, path)))
  try {
    editJson('package.json', (content) => ({ ...content, version }))
    editJson('package-lock.json', (content) => ({
      ...content,
      version,
      packages: { ...content['packages'], '': { ...content['packages'][''], version } },
    }))
    if (existsSync(join(root, CHART))) {
      edit(CHART, (text) => text.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`))
    }
    editJson(PREVIOUS, () => ({ version, commit: git('rev-parse', 'HEAD') }))
    const today = new Date().toISOString().slice(0, 10)
    edit(CHANGELOG, (text) => withRelease(text, version, today))
    run('generated pages', 'npm run --silent docs')
    run('data of this version', 'npm run --silent release:record')
    run('pictures', 'npm run --silent screenshot')
    git('add', '--', ...paths)
    const others = git('status', '--porcelain', '--', '.', ...paths.map((path) => `:!${path}`))
    if (others !== '') throw new Error(`changes that are not of this release:\n${others}`)
    git('commit', '--quiet', '--message', subject)
  } catch (error) {
    // These had no changes before; whatever else differs now is somebody else's.
    git('reset', '--quiet', '--', ...paths)
    git('checkout', '--quiet', '--', ...paths)
    git('clean', '--force', '-d', '--quiet', '--', RECORDED)
    throw error
  }
  print(git('show', '--stat', '--format=%h %s', 'HEAD'))
}

function makeTag(): void {
  print(`\n== tag ${tag}`)
  if (git('tag', '--list', tag) === '') git('tag', '--annotate', '--message', subject, tag)
  const [commit, head] = [git('rev-parse', `${tag}^{commit}`), git('rev-parse', 'HEAD')]
  if (commit !== head) throw new Error(`${tag} is on ${commit}, not on ${head}`)
  print(`${tag} is ${head}`)
}

/** Makes the release in a clone whose main is HEAD, and prints the problems that would stop a real one. */
function dryRun(): void {
  const clone = mkdtempSync(join(tmpdir(), 'tidings-release-'))
  try {
    const problems = [...problemsOfTree(), ...problemsOfVersion()]
    for (const problem of problems) print(`would be refused: ${problem}`)
    execFileSync('git', ['clone', '--quiet', root, clone])
    const inClone = (...args: readonly string[]) => execFileSync('git', args, { cwd: clone })
    inClone('checkout', '--quiet', '-B', 'main')
    for (const name of ['user.name', 'user.email']) {
      const value = spawnSync('git', ['config', name], { cwd: root, encoding: 'utf8' }).stdout
      if (value !== '') inClone('config', name, value.trim())
    }
    for (const folder of ['node_modules', '.cache']) {
      if (existsSync(join(root, folder))) symlinkSync(join(root, folder), join(clone, folder))
    }
    print(`in ${clone}; CI is not run`)
    const script = join(import.meta.dirname, 'release.ts')
    const args = [script, version, '--ci', 'true']
    const { status } = spawnSync(process.execPath, args, { cwd: clone, stdio: 'inherit' })
    if (status !== 0) throw new Error('the dry run failed; nothing was changed')
    spawnSync('ls', ['-l', join(clone, 'release')], { stdio: 'inherit' })
    print('that was a dry run: the clone is removed, and nothing was changed')
  } finally {
    rmSync(clone, { recursive: true, force: true })
  }
}

/** A command of a shell, whose output is shown; throws when it fails. */
function run(name: string, command: string): void {
  print(`\n== ${name}: ${command}`)
  const { status } = spawnSync(command, { cwd: root, shell: true, stdio: 'inherit' })
  if (status !== 0)
    throw new Error(`${name} failed: ${command}. Repeat the release when it is fixed`)
}

// biome-ignore lint/suspicious/noExplicitAny: manifests of npm have any members.
function editJson(file: string, change: (content: any) => unknown): void {
  edit(file, (text) => `${JSON.stringify(change(JSON.parse(text)), undefined, 2)}\n`)
}

function edit(file: string, change: (text: string) => string): void {
  writeFileSync(join(root, file), change(read(file)))
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
