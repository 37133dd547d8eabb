/**
 * Makes the release archive of this commit: `npm run dist`, or `npm run dist -- --arch=arm64`, into
 * `release/`. Two builds of a commit are identical, whoever makes them.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { packFolder, sha256, writeSums } from './archive.ts'
import { ARCHITECTURES, verifyOwnNode } from './node-package.ts'
import { releaseFolder } from './project.ts'
import { sbom } from './sbom.ts'
import { archiveName, stage } from './staging.ts'

const { values } = parseArgs({
  options: { arch: { type: 'string', default: 'x64' }, out: { type: 'string' } },
})
const architecture = ARCHITECTURES.find((known) => known === values.arch)
if (architecture === undefined) {
  throw new Error(`--arch is ${ARCHITECTURES.join(' or ')}, not ${values.arch}`)
}
verifyOwnNode()
const out = values.out ?? releaseFolder
mkdirSync(out, { recursive: true })
const work = mkdtempSync(join(tmpdir(), 'tidings-dist-'))
try {
  const folder = join(work, archiveName(architecture))
  stage(architecture, folder)
  const file = join(out, `${archiveName(architecture)}.tar.gz`)
  packFolder(folder, file)
  writeFileSync(join(out, `${archiveName(architecture)}.cdx.json`), sbom(architecture))
  writeSums(out)
  const megabytes = (statSync(file).size / 1e6).toFixed(1)
  process.stdout.write(`${file}: ${megabytes} MB, sha256 ${sha256(file)}\n`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
