/** Builds `dist/`: compiles the sources and records their commit. */
import { execFileSync } from 'node:child_process'
import { chmodSync, rmSync, writeFileSync } from 'node:fs'

const root = new URL('..', import.meta.url)
const dist = new URL('dist/', root)
// An archive that was unpacked inside another project's checkout does not have that project's
// commit.
const isCheckout = git('rev-parse', '--show-prefix') === '' && git('rev-parse', 'HEAD') !== ''

rmSync(dist, { recursive: true, force: true })
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
chmodSync(new URL('main.js', dist), 0o755)
writeFileSync(
  new URL('build.json', dist),
  `${JSON.stringify(
    {
      gitCommit: isCheckout ? git('rev-parse', 'HEAD') : '',
      gitTreeState: treeState(),
      // The commit's own date, so that two builds of one commit are the same.
      buildDate: new Date((isCheckout && git('log', '-1', '--format=%cI')) || 0).toISOString(),
    },
    undefined,
    2,
  )}\n`,
)

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
