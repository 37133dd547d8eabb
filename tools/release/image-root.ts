/**
 * The root filesystem of the container image, as the folder that the Containerfile copies: Node and
 * the program of the release archive, with libraries and certificates of Debian.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setModes } from './archive.ts'
import type { Architecture } from './node-package.ts'
import { root } from './project.ts'
import { type Component, sbom } from './sbom.ts'

const SUITE = { name: 'trixie', version: '13' }
const PACKAGES = [
  'base-files',
  'ca-certificates',
  'gcc-14-base',
  'libc6',
  'libgcc-s1',
  'libstdc++6',
]
/** What Node and DuckDB are linked with, and the loader. (DNS and /etc/hosts are in the C library itself.) */
const LIBRARIES =
  /^(ld-linux-.*\.so\.\d|lib(c|m|dl|pthread|rt|resolv)\.so\.\d|libgcc_s\.so\.1|libstdc\+\+\.so\.6.*)$/

/** Keyed by Node's name of the processor. */
const DEBIAN: Readonly<Record<Architecture, { name: string; triplet: string; loader: string }>> = {
  x64: { name: 'amd64', triplet: 'x86_64-linux-gnu', loader: 'usr/lib64/ld-linux-x86-64.so.2' },
  arm64: { name: 'arm64', triplet: 'aarch64-linux-gnu', loader: 'usr/lib/ld-linux-aarch64.so.1' },
}

/** Files of the archive that an image does not need; the launcher, for one, needs a shell. */
const LEFT_OUT = [
  'bin',
  'charts',
  'deploy',
  'docs',
  'monitoring',
  'share/systemd',
  'share/trial',
  'sbom.cdx.json',
]
const HOME = 'opt/tidings'
/** Names and versions of Debian's packages, where scanners find them. */
const STATUS = 'var/lib/dpkg/status.d'
const COMMON_LICENCES = 'usr/share/common-licenses'
const NODE = `${HOME}/lib/node/bin/node`

export interface ImageRoot {
  readonly architecture: Architecture
  /** The unpacked archive; it is moved. */
  readonly archive: string
  /** Becomes the root. */
  readonly folder: string
  /** Use the Debian packages of the last build, if there are any. */
  readonly isCached: boolean
}

export function makeImageRoot({ architecture, archive, folder, isCached }: ImageRoot): void {
  for (const name of LEFT_OUT) rmSync(join(archive, name), { recursive: true })
  for (const name of readdirSync(archive)) if (name.endsWith('.md')) rmSync(join(archive, name))
  mkdirSync(join(folder, dirname(HOME)), { recursive: true })
  renameSync(archive, join(folder, HOME))
  const debian = debianPackages(architecture, isCached)
  copyDebian(debian, folder, architecture)
  writeSettings(folder)
  const components = sbom(architecture, debianComponents(debian))
  writeFileSync(join(folder, HOME, 'sbom.cdx.json'), components)
  const start = `#!/${NODE}\nimport('/${HOME}/lib/tidings/dist/main.js')\n`
  writeText(folder, 'usr/bin/tidings', start)
  const { triplet, loader } = DEBIAN[architecture]
  // The kernel starts Node through the loader, so that must be executable too.
  setModes(folder, new Set([NODE, join('usr/lib', triplet, basename(loader)), 'usr/bin/tidings']))
}

/** A folder with the unpacked packages; apt has verified their signatures. */
function debianPackages(architecture: Architecture, isCached: boolean): string {
  const { name } = DEBIAN[architecture]
  const folder = join(root, `.cache/debian-${SUITE.version}-${name}`)
  const isComplete = PACKAGES.every((each) => existsSync(join(folder, STATUS, each)))
  if (isCached && isComplete) return folder
  rmSync(folder, { recursive: true, force: true })
  const script = join(root, 'tools/debian-packages')
  const incoming = `${folder}.incoming`
  rmSync(incoming, { recursive: true, force: true })
  execFileSync(script, [`${SUITE.name}:${name}`, incoming, ...PACKAGES], { stdio: 'inherit' })
  renameSync(incoming, folder)
  return folder
}

function copyDebian(debian: string, base: string, architecture: Architecture): void {
  const { triplet, loader } = DEBIAN[architecture]
  const libraries = `usr/lib/${triplet}`
  const copy = (path: string): void =>
    cpSync(join(debian, path), join(base, path), { recursive: true, verbatimSymlinks: true })
  for (const name of readdirSync(join(debian, libraries))) {
    if (LIBRARIES.test(name)) copy(join(libraries, name))
  }
  copy(loader)
  for (const name of ['lib', 'lib64']) {
    if (existsSync(join(base, 'usr', name))) symlinkSync(`usr/${name}`, join(base, name))
  }
  for (const name of PACKAGES) {
    const text = `usr/share/doc/${name}/copyright`
    // Some packages refer to the texts of another one.
    writeText(base, text, readFileSync(join(debian, text), 'utf8'))
  }
  // Texts that those refer to.
  copy(COMMON_LICENCES)
  for (const name of PACKAGES) copy(join(STATUS, name))
  writeText(base, 'etc/ssl/certs/ca-certificates.crt', rootCertificates(debian))
}

/** All of Mozilla's, as Debian's update-ca-certificates joins them. */
function rootCertificates(debian: string): string {
  const folder = join(debian, 'usr/share/ca-certificates/mozilla')
  const files = readdirSync(folder).sort()
  return files.map((name) => readFileSync(join(folder, name), 'utf8')).join('')
}

function writeSettings(base: string): void {
  const nobody = '/nonexistent:/usr/sbin/nologin'
  writeText(
    base,
    'etc/passwd',
    `root:x:0:0:root:${nobody}\ntidings:x:65532:65532:tidings:${nobody}\n`,
  )
  writeText(base, 'etc/group', 'root:x:0:\ntidings:x:65532:\n')
  // Without it, the C library asks DNS before /etc/hosts.
  writeText(base, 'etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n')
  // Scanners read the suite from it, and the packages from /var/lib/dpkg/status.d.
  const release = [
    `PRETTY_NAME="tidings, with libraries of Debian ${SUITE.version}"`,
    'ID=debian',
    `VERSION_ID="${SUITE.version}"`,
    `VERSION_CODENAME=${SUITE.name}`,
  ]
  writeText(base, 'etc/os-release', `${release.join('\n')}\n`)
  // Places for mounts: what the program or a user may want to write.
  for (const place of ['tmp', 'var/run/tidings', 'var/log/tidings', 'etc/tidings']) {
    mkdirSync(join(base, place), { recursive: true })
  }
}

function writeText(base: string, path: string, text: string): void {
  mkdirSync(dirname(join(base, path)), { recursive: true })
  writeFileSync(join(base, path), text)
}

function debianComponents(debian: string): readonly Component[] {
  return PACKAGES.map((name) => {
    const text = readFileSync(join(debian, STATUS, name), 'utf8')
    const field = (of: string): string => new RegExp(`^${of}: (.*)$`, 'm').exec(text)?.[1] ?? ''
    const version = field('Version')
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${field('Architecture')}&distro=debian-${SUITE.version}`
    return { 'bom-ref': purl, type: 'library', name, version, purl }
  })
}
