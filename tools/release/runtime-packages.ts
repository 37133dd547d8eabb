/**
 * Every package that a release contains, with its licence and the reason why it is there. Facts come
 * from package-lock.json; the purpose of a direct dependency from docs/dependencies.md, and that of
 * any other package is the one that needs it. Packages of the program are installed in a release;
 * those of the page are a part of its scripts and styles, and the build says which they are.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Architecture } from './node-package.ts'
import type { LockedPackage } from './npm-package.ts'
import { root } from './project.ts'

/** Licences that allow what we do: passing the package on, unchanged, with its licence text. */
const ACCEPTED = new Set(['Apache-2.0', 'MIT', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', '0BSD'])

export interface RuntimePackage extends LockedPackage {
  readonly licence: string
  readonly reason: string
  /** The path in the project and, for packages of the program, in a release: `node_modules/jose`. */
  readonly path: string
  /** A package that installs without it: the native part for one platform. */
  readonly isOptional: boolean
}

export interface LockEntry {
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export type LockedPackages = Readonly<Record<string, LockEntry>>
/** Keyed by package name. */
export type Purposes = ReadonlyMap<string, string>

/** The packages of the program; throws when one of them has no licence or no reason. */
export function runtimePackages(architecture: Architecture): readonly RuntimePackage[] {
  const { locked, purposes } = readFacts()
  return checked(packagesOf(locked, purposes, architecture))
}

/** The packages in the page of the last build; throws like the others. */
export function pagePackages(): readonly RuntimePackage[] {
  const { locked, purposes } = readFacts()
  const text = readFileSync(join(root, 'dist/ui/packages.json'), 'utf8')
  return checked(builtPackagesOf(locked, purposes, JSON.parse(text)))
}

/** Returns the packages sorted by path. */
export function packagesOf(
  locked: LockedPackages,
  purposes: Purposes,
  architecture: Architecture,
): readonly RuntimePackage[] {
  const entries = Object.entries(locked).filter(
    ([path, entry]) => path !== '' && entry.dev !== true && runsOn(entry, architecture),
  )
  return described(entries, purposes)
}

/** Releases are for Linux with glibc. */
function runsOn({ os, cpu, libc }: LockEntry, architecture: Architecture): boolean {
  const includes = (names: readonly string[] | undefined, name: string): boolean =>
    names === undefined || names.includes(name)
  return includes(os, 'linux') && includes(cpu, architecture) && includes(libc, 'glibc')
}

/** Those at the given paths, whatever npm needs them for. */
export function builtPackagesOf(
  locked: LockedPackages,
  purposes: Purposes,
  paths: readonly string[],
): readonly RuntimePackage[] {
  const unknown = paths.filter((path) => locked[path] === undefined)
  if (unknown.length > 0) throw new Error(`not in package-lock.json: ${unknown.join(', ')}`)
  const wanted = new Set(paths)
  return described(
    Object.entries(locked).filter(([path]) => wanted.has(path)),
    purposes,
  )
}

function readFacts(): { readonly locked: LockedPackages; readonly purposes: Purposes } {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const page = readFileSync(join(root, 'docs/dependencies.md'), 'utf8')
  return { locked: packages, purposes: purposesIn(page) }
}

function described(
  entries: readonly [string, LockEntry][],
  purposes: Purposes,
): readonly RuntimePackage[] {
  return entries.map(([path, { version = '', integrity = '', license = '', optional = false }]) => {
    const name = nameOf(path)
    const reason = purposes.get(name) ?? neededBy(name, entries)
    return { name, version, integrity, licence: license, reason, path, isOptional: optional }
  })
}

function checked(packages: readonly RuntimePackage[]): readonly RuntimePackage[] {
  const faults = faultsOf(packages)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return packages
}

/** A line for each package that must not be released like this. */
export function faultsOf(packages: readonly RuntimePackage[]): readonly string[] {
  return packages.flatMap(({ name, licence, reason }) => {
    const faults: string[] = []
    const ids = licence.split(/[ ()]+|AND|OR/).filter((id) => id !== '')
    if (ids.length === 0) faults.push(`${name} states no licence`)
    for (const id of ids) {
      if (!ACCEPTED.has(id)) faults.push(`${name} has the licence ${id}, which is not accepted`)
    }
    if (reason === '') faults.push(`${name} has no row in docs/dependencies.md`)
    return faults
  })
}

/** The first two columns of the tables: packages, and their purpose. */
export function purposesIn(page: string): Purposes {
  const purposes = new Map<string, string>()
  for (const line of page.split('\n')) {
    const [, packages = '', purpose = ''] = line.split('|').map((cell) => cell.trim())
    for (const [, name = ''] of packages.matchAll(/`([^`]+)`/g)) purposes.set(name, purpose)
  }
  return purposes
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

function neededBy(name: string, packages: readonly [string, LockEntry][]): string {
  const users = packages
    .filter(([, { dependencies, optionalDependencies }]) => {
      return dependencies?.[name] !== undefined || optionalDependencies?.[name] !== undefined
    })
    .map(([path]) => nameOf(path))
  return users.length === 0 ? '' : `needed by ${[...new Set(users)].join(', ')}`
}
