/** What the release tools know of the checkout that they run in. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root: string = join(import.meta.dirname, '../..')
/** Where released files are put. */
export const releaseFolder: string = join(root, 'release')

export interface PackageJson {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly engines: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

export function packageJson(): PackageJson {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
}

/** The date of the commit, in seconds: the time of every file in a release. 0 without a commit. */
export function commitSeconds(): number {
  return Number(ofCommit('log', '-1', '--format=%ct'))
}

/** Empty without a commit, such as in sources without a repository. */
export function commitHash(): string {
  return ofCommit('rev-parse', '--verify', 'HEAD')
}

/** What differs from the commit, and what is not in it though it would be packed; empty if nothing. */
export function changesOfTree(): string {
  const ignored = [
    '--ignored',
    '--',
    'charts',
    'deploy',
    'docs',
    'monitoring',
    'src',
    'tools',
    'ui',
  ]
  return [git('status', '--porcelain'), git('status', '--porcelain', ...ignored)]
    .filter((lines) => lines !== '')
    .join('\n')
}

function ofCommit(...args: readonly string[]): string {
  try {
    return git(...args)
  } catch {
    return ''
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim()
}
