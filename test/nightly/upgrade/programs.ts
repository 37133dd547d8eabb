/**
 * Programs of other versions: the build of a commit or tag, or a release archive.
 *
 * A commit is built from `git archive`, in a folder under `.cache`, and kept there. It uses the
 * packages of this tree when they are those of its lock file, and installs its own otherwise.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'

export interface Program {
  /** For people: `v0.1.0`, `378fd93`, `this tree`. */
  readonly name: string
  /** `main.js` for this Node, or the launcher of an archive, which brings its own. */
  readonly file: string
}

const root = join(import.meta.dirname, '../../..')
const cache = join(root, '.cache/programs')
const previousFile = join(root, 'test/releases/previous.json')
const run = promisify(execFile)

/** The build in `dist/`; `npm run build` makes it. */
export const thisTree: Program = { name: 'this tree', file: join(root, 'dist/main.js') }

/** Of a file that ends in `.tar.gz`, a tag, or a commit. */
export function programOf(source: string): Promise<Program> {
  return source.endsWith('.tar.gz') ? unpack(source) : build(source)
}

/**
 * The newest release before this tree: its tag, or the commit in `test/releases/previous.json`.
 * Undefined when the repository has neither, as a shallow clone.
 */
export async function previousRef(): Promise<string | undefined> {
  const newest = await git('describe', '--tags', '--abbrev=0', '--match', 'v*').catch(() => '')
  if (newest !== '') return newest
  const { commit }: { readonly commit: string } = JSON.parse(readFileSync(previousFile, 'utf8'))
  return git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`).catch(() => undefined)
}

/** This tree with another version number. */
export async function renumbered(version: string): Promise<Program> {
  const folder = await emptyFolder(`this-tree-as-${version}`)
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await cp(join(root, 'dist'), join(folder, 'dist'), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }))
  return { name: `this tree as ${version}`, file: join(folder, 'dist/main.js') }
}

async function build(ref: string): Promise<Program> {
  const commit = await git('rev-parse', '--verify', `${ref}^{commit}`)
  const kept = join(cache, commit)
  const program = { name: ref.slice(0, 12), file: join(kept, 'dist/main.js') }
  if (existsSync(program.file)) return program
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
  return program
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
  return { name, file: join(folder, name, 'bin/tidings') }
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
