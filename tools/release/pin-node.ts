/**
 * Pins the hashes of Node for a release: `npm run node:pin`, after an update of `node` in
 * package.json. It writes node-packages.json and `.node-version`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ARCHITECTURES } from './node-package.ts'
import { npm } from './npm.ts'
import { packageJson, root } from './project.ts'

const version = packageJson().devDependencies['node'] ?? ''
const hashes = ARCHITECTURES.map((architecture) => {
  const name = `node-linux-${architecture}@${version}`
  const hash = npm(['view', name, 'dist.integrity'], root).trim()
  if (!hash.startsWith('sha512-')) throw new Error(`${name} has no sha512: ${hash}`)
  return [architecture, hash]
})
const pinned = { version, ...Object.fromEntries(hashes) }
writeFileSync(
  join(import.meta.dirname, 'node-packages.json'),
  `${JSON.stringify(pinned, undefined, 2)}\n`,
)
writeFileSync(join(root, '.node-version'), `${version}\n`)
