/**
 * Makes the container image from the release archive, with Debian's buildah: `npm run image`, into
 * `release/tidings-<version>-linux-x64.oci.tar`. The digest depends on the commit and on the versions
 * of Debian's packages, which the image lists; with `--cached` they are those of the last build.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { packFiles, writeSums } from './archive.ts'
import { makeImageRoot } from './image-root.ts'
import { ARCHITECTURES, type Architecture } from './node-package.ts'
import { commitHash, commitSeconds, packageJson, releaseFolder, root } from './project.ts'
import { archiveName } from './staging.ts'

/** Go's names of processors, keyed by Node's. */
const GO_NAMES: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' }

const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: 'x64' },
    out: { type: 'string', default: releaseFolder },
    cached: { type: 'boolean', default: false },
  },
})
const architecture = ARCHITECTURES.find((known) => known === values.arch)
if (architecture === undefined) {
  throw new Error(`--arch is ${ARCHITECTURES.join(' or ')}, not ${values.arch}`)
}
const work = mkdtempSync(join(tmpdir(), 'tidings-image-'))
try {
  makeImage(architecture)
} finally {
  rmSync(work, { recursive: true, force: true })
}

function makeImage(wanted: Architecture): void {
  const name = archiveName(wanted)
  const archive = join(values.out, `${name}.tar.gz`)
  if (!existsSync(archive)) throw new Error(`no ${archive}: run npm run dist first`)
  execFileSync('tar', ['-xzf', archive, '-C', work, '--no-same-owner'])
  makeImageRoot({
    architecture: wanted,
    archive: join(work, name),
    folder: join(work, 'root'),
    isCached: values.cached,
  })
  build(wanted)
  const layout = join(work, 'layout')
  buildah('push', '--quiet', 'tidings', `oci:${layout}:localhost/tidings:${packageJson().version}`)
  const file = join(values.out, `${name}.oci.tar`)
  packFiles(layout, file)
  writeSums(values.out)
  const megabytes = (statSync(file).size / 1e6).toFixed(1)
  process.stdout.write(`${file}: ${megabytes} MB, digest ${digestOf(layout)}\n`)
}

function build(wanted: Architecture): void {
  const { name, version, description, license } = packageJson()
  const labels = {
    title: name,
    description,
    version,
    licenses: license,
    revision: commitHash(),
    created: new Date(commitSeconds() * 1000).toISOString(),
  }
  const options = Object.entries(labels).flatMap(([label, value]) => {
    return ['--label', `org.opencontainers.image.${label}=${value}`]
  })
  buildah(
    'build',
    '--quiet',
    '--isolation=chroot',
    '--layers',
    '--format=oci',
    `--platform=linux/${GO_NAMES[wanted]}`,
    `--timestamp=${commitSeconds()}`,
    // Else the version of buildah becomes a label.
    '--identity-label=false',
    ...options,
    '--tag=tidings',
    `--file=${join(root, 'Containerfile')}`,
    work,
  )
}

/** Runs buildah on a temporary storage: it reuses nothing of earlier builds and leaves nothing behind. */
function buildah(command: string, ...args: readonly string[]): void {
  const storage = ['--storage-driver=vfs', `--root=${work}/storage`, `--runroot=${work}/run`]
  execFileSync('buildah', [...storage, command, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

function digestOf(layout: string): string {
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  return manifests[0].digest
}
