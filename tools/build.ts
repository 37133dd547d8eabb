/**
 * Builds `dist/`: compiles the sources, bundles the web page, and records their commit. A build of the same inputs and
 * commit is left as it is, and another one is replaced as a whole when the new one is complete,
 * since stages of tests whose servers run from it may run at the same time.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import process from 'node:process'
import { buildPage } from './build-page.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')
// An archive that was unpacked inside another project's checkout does not have that project's
// commit.
const isCheckout = git('rev-parse', '--show-prefix') === '' && git('rev-parse', 'HEAD') !== ''

interface Facts {
  readonly gitCommit: string
  readonly gitTreeState: string
  readonly buildDate: string
  readonly inputs: string
}

const facts: Facts = {
  gitCommit: isCheckout ? git('rev-parse', 'HEAD') : '',
  gitTreeState: treeState(),
  // The commit's own date, so that two builds of one commit are the same.
  buildDate: new Date((isCheckout && git('log', '-1', '--format=%cI')) || 0).toISOString(),
  inputs: digestOfInputs(),
}
if (!isUpToDate(factsOfLastBuild())) await build(join(root, `dist.${process.pid}`))

/** Whoever edits a page while tests run does not replace their build, but no release is dirty. */
function isUpToDate(last: Partial<Facts>): boolean {
  const isSame = last.inputs === facts.inputs && last.gitCommit === facts.gitCommit
  return isSame && (last.gitTreeState === facts.gitTreeState || facts.gitTreeState === 'dirty')
}

async function build(fresh: string): Promise<void> {
  try {
    const args = ['-p', 'tsconfig.build.json', '--outDir', fresh]
    execFileSync('tsc', args, { cwd: root, stdio: 'inherit' })
    await buildPage(join(fresh, 'ui'))
    chmodSync(join(fresh, 'main.js'), 0o755)
    writeFileSync(join(fresh, 'build.json'), `${JSON.stringify(facts, undefined, 2)}\n`)
    replaceDist(fresh)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Replaces `dist` by two renames, so nobody finds half a build. Another build may do the same in between. */
function replaceDist(fresh: string): void {
  const old = `${fresh}.old`
  for (let isDone = false; !isDone; ) {
    hasRenamed(dist, old, 'ENOENT')
    isDone = hasRenamed(fresh, dist, 'ENOTEMPTY')
    rmSync(old, { recursive: true, force: true })
  }
}

/** False for one expected error. */
function hasRenamed(from: string, to: string, expected: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== expected) throw error
    return false
  }
}

function factsOfLastBuild(): Partial<Facts> {
  try {
    return JSON.parse(readFileSync(join(dist, 'build.json'), 'utf8'))
  } catch {
    return {}
  }
}

/** Hashes everything that is compiled or bundled; package-lock.json stands for the packages. */
function digestOfInputs(): string {
  const digest = createHash('sha256')
  const files = ['src', 'ui'].flatMap(filesIn).filter((name) => !name.endsWith('.test.ts'))
  const settings = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'tools/build.ts',
    'tools/build-page.ts',
  ]
  for (const file of [...settings, ...files.sort()]) {
    digest
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  }
  return digest.digest('hex')
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
}

function treeState(): string {
  if (!isCheckout) return 'archive'
  return git('status', '--porcelain') === '' ? 'clean' : 'dirty'
}

/** Empty outside a checkout: a build from an archive knows no commit. */
function git(...args: readonly string[]): string {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return ''
  }
}
