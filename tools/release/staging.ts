/**
 * Lays out the folder that the release archive packs. It is made from the lock file and from files
 * of the checkout only, so that two builds of a commit are the same.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setModes } from './archive.ts'
import { copyLicences, writeLicenceTable } from './licences.ts'
import { type Architecture, unpackNode } from './node-package.ts'
import { npm } from './npm.ts'
import { verifiedPackage } from './npm-package.ts'
import { packageJson, root } from './project.ts'
import { pagePackages, type RuntimePackage, runtimePackages } from './runtime-packages.ts'
import { sbom } from './sbom.ts'

/** Paths in the archive, keyed by paths in the checkout. */
const COPIES: Readonly<Record<string, string>> = {
  'tools/release/files/tidings': 'bin/tidings',
  'tools/release/files/trial': 'share/trial',
  'tools/debian-packages': 'share/trial/debian-packages',
  'deploy/roles': 'share/roles',
  'deploy/systemd': 'share/systemd',
  // Where the pages link to.
  charts: 'charts',
  deploy: 'deploy',
  docs: 'docs',
  monitoring: 'monitoring',
  LICENSE: 'LICENSE',
  'README.md': 'README.md',
  'ARCHITECTURE.md': 'ARCHITECTURE.md',
  'CONTRIBUTING.md': 'CONTRIBUTING.md',
  'CHANGELOG.md': 'CHANGELOG.md',
  'RELEASING.md': 'RELEASING.md',
  'SECURITY.md': 'SECURITY.md',
}

const EXECUTABLES: ReadonlySet<string> = new Set([
  'bin/tidings',
  'lib/node/bin/node',
  'share/trial/debian-packages',
  'share/trial/kubectl',
  'share/trial/start',
])

/** Folders at the top of a package, and files anywhere in it, that no program loads. */
const NEEDLESS_FOLDERS = /^(tests?|benchmarks?|docs|examples|\.github)$/
const NEEDLESS_FILES = /\.([cm]?ts|map|md|markdown|flow|tsbuildinfo)$/

export function archiveName(architecture: Architecture): string {
  return `tidings-${packageJson().version}-linux-${architecture}`
}

/** Needs `dist/`, as `npm run build` makes it. */
export function stage(architecture: Architecture, folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  const program = join(folder, 'lib/tidings')
  mkdirSync(program, { recursive: true })
  const packages = runtimePackages(architecture)
  installPackages(packages, program)
  const licences = join(folder, 'licenses')
  const inPage = pagePackages()
  copyLicences(packages, { from: program, to: licences })
  copyLicences(inPage, { from: root, to: licences })
  writeLicenceTable([...packages, ...inPage], licences)
  for (const { path } of packages) prune(join(program, path))
  cpSync(join(root, 'dist'), join(program, 'dist'), { recursive: true, filter: isNeeded })

  const node = join(folder, 'lib/node')
  unpackNode(architecture, node)
  cpSync(join(node, 'LICENSE'), join(licences, 'node/LICENSE'))
  for (const [from, to] of Object.entries(COPIES)) {
    cpSync(join(root, from), join(folder, to), { recursive: true })
  }
  writeFileSync(join(folder, 'sbom.cdx.json'), sbom(architecture))
  setModes(folder, EXECUTABLES)
}

/**
 * npm verifies the hash of every package, and runs none of their scripts. It chooses optional ones
 * for the machine that it runs on, in older versions without a look at the C library: those for the
 * platform of the release are added by their hashes.
 */
function installPackages(packages: readonly RuntimePackage[], folder: string): void {
  for (const file of ['package.json', 'package-lock.json'])
    cpSync(join(root, file), join(folder, file))
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline']
  const omit = ['--omit=dev', '--omit=optional']
  npm(['ci', ...omit, '--ignore-scripts', '--no-bin-links', ...quiet], folder)
  for (const optional of packages.filter(({ isOptional }) => isOptional)) {
    const place = join(folder, optional.path)
    mkdirSync(place, { recursive: true })
    const from = ['-xzf', verifiedPackage(optional), '-C', place]
    execFileSync('tar', [...from, '--strip-components=1', '--no-same-owner'])
  }
  rmSync(join(folder, 'package-lock.json'))
  rmSync(join(folder, 'node_modules/.package-lock.json'))
  const { name, version, description, license, engines, dependencies } = packageJson()
  const own = { name, version, description, license, private: true, type: 'module' }
  const text = JSON.stringify({ ...own, engines, dependencies }, undefined, 2)
  writeFileSync(join(folder, 'package.json'), `${text}\n`)
}

function prune(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && NEEDLESS_FOLDERS.test(entry.name)) rmSync(path, { recursive: true })
  }
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    if (!isNeeded(path)) rmSync(path, { force: true })
  }
}

function isNeeded(path: string): boolean {
  return !NEEDLESS_FILES.test(basename(path))
}
