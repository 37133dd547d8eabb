/**
 * Programs of other versions: the build of a commit or tag, or a release archive.
 *
 * A commit is built from `git archive`, in a folder under `.cache`, and kept there. It uses the
 * packages of this tree when they are those of its lock file, and installs its own otherwise.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'

export interface Program {
  /** The name for people: `v0.1.0`, `378fd93`, `this tree`. */
  readonly name: string
  /** `main.js` for this Node, or the launcher of an archive, which brings its own. */
  readonly file: string
  readonly identity: Identity
}

/** What a server of this program says at `/version`. */
export interface Identity {
  readonly version: string
  readonly commit: string
}

const root = join(import.meta.dirname, '../../..')
const cache = join(root, '.cache/programs')
const previousFile = join(root, 'test/releases/previous.json')
const run = promisify(execFile)

/** The build in `dist/`; `npm run build` makes it. */
export function thisTree(): Program {
  return { name: 'this tree', file: join(root, 'dist/main.js'), identity: identityIn(root) }
}

/** Takes a file that ends in `.tar.gz`, a tag, or a commit. */
export function programOf(source: string): Promise<Program> {
  return source.endsWith('.tar.gz') ? unpack(source) : build(source)
}

/**
 * The newest release before this tree: its tag, or the commit in `test/releases/previous.json`.
 * Undefined when the repository has neither, as a shallow clone. At a release, it is the one before.
 */
export async function previousRef(): Promise<string | undefined> {
  const tags = await git('tag', '--points-at', 'HEAD').catch(() => '')
  const own = tags.split('\n').filter((tag) => tag !== '')
  const exclude = own.map((tag) => `--exclude=${tag}`)
  const args = ['describe', '--tags', '--abbrev=0', '--match', 'v*', ...exclude]
  const newest = await git(...args).catch(() => '')
  if (newest !== '') return newest
  const { commit } = readJson(previousFile)
  return git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`).catch(() => undefined)
}

async function build(ref: string): Promise<Program> {
  const commit = await git('rev-parse', '--verify', `${ref}^{commit}`)
  const kept = join(cache, commit)
  if (!existsSync(join(kept, 'dist/main.js'))) await buildCommit(commit, kept)
  const record = join(kept, 'dist/build.json')
  // A build of an archive does not know its commit.
  await writeFile(record, JSON.stringify({ ...readJson(record), gitCommit: commit }))
  const file = join(kept, 'dist/main.js')
  return { name: ref.slice(0, 12), file, identity: identityIn(kept) }
}

async function buildCommit(commit: string, kept: string): Promise<void> {
  const folder = await emptyFolder(`${commit}.new`)
  const archive = join(folder, 'source.tar')
  await git('archive', '--output', archive, commit)
  await run('tar', ['-xf', archive, '-C', folder])
  await rm(archive)
  if (hasItsPackages(folder)) {
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  } else {
    await run('npm', ['ci', '--no-fund', '--no-audit'], { cwd: folder })
  }
  await run('node', ['tools/build.ts'], { cwd: folder })
  await rm(kept, { recursive: true, force: true })
  await rename(folder, kept)
}

function identityIn(folder: string): Identity {
  const { version = '' } = readJson(join(folder, 'package.json'))
  const { gitCommit = '' } = readJson(join(folder, 'dist/build.json'))
  return { version, commit: gitCommit }
}

function readJson(file: string): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Whether the packages of this tree are, in the same versions, what that tree needs. */
function hasItsPackages(folder: string): boolean {
  const packagesOf = (tree: string): Readonly<Record<string, { readonly version?: string }>> =>
    JSON.parse(readFileSync(join(tree, 'package-lock.json'), 'utf8')).packages
  const ours = packagesOf(root)
  return Object.entries(packagesOf(folder)).every(
    ([path, { version }]) => path === '' || ours[path]?.version === version,
  )
}

async function unpack(archive: string): Promise<Program> {
  const folder = await emptyFolder(basename(archive, '.tar.gz'))
  await run('tar', ['-xzf', archive, '-C', folder])
  const [name = ''] = await readdir(folder)
  const file = join(folder, name, 'bin/tidings')
  return { name, file, identity: identityIn(join(folder, name, 'lib/tidings')) }
}

async function emptyFolder(name: string): Promise<string> {
  const folder = join(cache, name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  return folder
}

async function git(...args: readonly string[]): Promise<string> {
  return (await run('git', args, { cwd: root })).stdout.trim()
}
