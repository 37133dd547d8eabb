/** Packages of npm's registry, fetched as files whose hashes are known before. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from './npm.ts'
import { root } from './project.ts'

export interface LockedPackage {
  readonly name: string
  readonly version: string
  /** As in package-lock.json: `sha512-` and the hash in base64. */
  readonly integrity: string
}

/** The path of the package, fetched unless it was before; its hash is checked in any case. */
export function verifiedPackage({ name, version, integrity }: LockedPackage): string {
  const cache = join(root, '.cache/node-packages')
  const packed = `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`
  const file = join(cache, packed)
  if (!existsSync(file)) {
    const incoming = join(cache, `incoming-${process.pid}`)
    mkdirSync(incoming, { recursive: true })
    npm(['pack', '--silent', '--ignore-scripts', `${name}@${version}`], incoming)
    renameSync(join(incoming, packed), file)
    rmSync(incoming, { recursive: true })
  }
  const actual = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
  if (actual !== integrity) {
    rmSync(file)
    throw new Error(`${name}@${version} is not the pinned package: ${actual} is not ${integrity}`)
  }
  return file
}
