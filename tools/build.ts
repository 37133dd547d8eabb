/**
 * Builds `dist/`: compiles the sources and records their commit. A build of the same inputs is left
 * as it is, since stages of tests that need one may run at the same time.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import process from 'node:process'

const root = new URL('..', import.meta.url)
const dist = new URL('dist/', root)
// An archive that was unpacked inside another project's checkout does not have that project's
// commit.
const isCheckout = git('rev-parse', '--show-prefix') === '' && git('rev-parse', 'HEAD') !== ''

const facts = {
  gitCommit: isCheckout ? git('rev-parse', 'HEAD') : '',
  gitTreeState: treeState(),
  // The commit's own date, so that two builds of one commit are the same.
  buildDate: new Date((isCheckout && git('log', '-1', '--format=%cI')) || 0).toISOString(),
  inputs: digestOfInputs(),
}
const record = `${JSON.stringify(facts, undefined, 2)}\n`

if (record === recordOfLastBuild()) process.exit()
rmSync(dist, { recursive: true, force: true })
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
chmodSync(new URL('main.js', dist), 0o755)
// Last: without it, the build is not complete.
writeFileSync(new URL('build.json', dist), record)

function recordOfLastBuild(): string {
  try {
    return readFileSync(new URL('build.json', dist), 'utf8')
  } catch {
    return ''
  }
}

/** Of everything that the compiler reads, but for its own packages, which package-lock.json names. */
function digestOfInputs(): string {
  const digest = createHash('sha256')
  const sources = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' })
  const files = sources.filter((name) => name.endsWith('.ts')).map((name) => `src/${name}`)
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
  for (const file of [...settings, ...files.sort()]) {
    digest
      .update(`${file}\0`)
      .update(readFileSync(new URL(file, root)))
      .update('\0')
  }
  return digest.digest('hex')
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
