/** The container image in `release/`: `npm test -- release:full` makes it first. Needs root. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { commitHash, packageJson, releaseFolder } from '../../../tools/release/project.ts'
import { archiveName } from '../../../tools/release/staging.ts'
import { startEtcd } from '../../support/etcd.ts'
import { assertPageIsServed } from '../../support/served-page.ts'
import { Tidings } from '../../support/tidings.ts'
import { UnpackedImage } from '../../support/unpacked-image.ts'

const BYTES_MAX = 85 * 1000 * 1000
const USER = 65532
const READY_MS_MAX = 60_000
const image = new UnpackedImage(join(releaseFolder, `${archiveName('x64')}.oci.tar`))
after(() => image[Symbol.dispose]())
/** Leaves out what a second name, such as `lib` for `usr/lib`, leads to. */
const paths = readdirSync(image.root, { recursive: true, encoding: 'utf8' }).filter(
  (path) => !/^lib(64)?\//.test(path),
)

test('image: says what it is, and runs as a user without rights', () => {
  const { config, architecture } = image.config
  assert.equal(architecture, 'amd64')
  assert.equal(config.User, `${USER}:${USER}`)
  assert.deepEqual(config.Entrypoint, ['/usr/bin/tidings'])
  const { version, license, description } = packageJson()
  const { 'org.opencontainers.image.created': created, ...labels } = config.Labels
  assert.deepEqual(labels, {
    'org.opencontainers.image.title': 'tidings',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commitHash(),
    'org.opencontainers.image.licenses': license,
  })
  assert.match(created ?? '', /^\d{4}-\d\d-\d\dT/)
  assert.equal(image.name, `localhost/tidings:${version}`)
})

test('image: is small', () => {
  assert.ok(image.bytes <= BYTES_MAX, `${image.bytes} bytes`)
})

test('image: has no shell and nothing else to start but Node', () => {
  const programs = paths.filter((path) => {
    const found = lstatSync(join(image.root, path))
    return found.isFile() && (found.mode & 0o111) !== 0
  })
  const known = ['node', 'tidings', 'ld-linux-x86-64.so.2']
  assert.deepEqual(programs.map((path) => basename(path)).sort(), known.sort())
  const loose = paths.filter((path) => {
    const found = lstatSync(join(image.root, path))
    return !found.isSymbolicLink() && (found.mode & 0o6002) !== 0
  })
  assert.deepEqual(loose, [])
})

test('image: lists the packages of Debian, with their licences', () => {
  const status = join(image.root, 'var/lib/dpkg/status.d')
  const names = readdirSync(status)
  assert.deepEqual(names.sort(), [
    'base-files',
    'ca-certificates',
    'gcc-14-base',
    'libc6',
    'libgcc-s1',
    'libstdc++6',
  ])
  const sbom = readFileSync(join(image.root, 'opt/tidings/sbom.cdx.json'), 'utf8')
  for (const name of names) {
    const copyright = readFileSync(join(image.root, 'usr/share/doc', name, 'copyright'), 'utf8')
    for (const [text] of copyright.matchAll(/\/usr\/share\/common-licenses\/[\w.-]*\w/g)) {
      assert.ok(existsSync(join(image.root, text)), `${name}: ${text}`)
    }
    assert.ok(sbom.includes(`pkg:deb/debian/${name}@`), name)
  }
  assert.ok(existsSync(join(image.root, 'opt/tidings/licenses/node/LICENSE')))
})

test('image: its libraries are all that DuckDB needs', () => {
  const script = `
    const { DuckDBInstance } = require('/opt/tidings/lib/tidings/node_modules/@duckdb/node-api')
    DuckDBInstance.create()
      .then((instance) => instance.connect())
      .then((connection) => connection.runAndReadAll('SELECT sum(range)::INTEGER FROM range(5)'))
      .then((reader) => process.stdout.write(String(reader.getRows()[0]?.[0])))`
  const user = `--userspec=${USER}:${USER}`
  const program = ['/opt/tidings/lib/node/bin/node', '--eval', script]
  const options = { env: {}, encoding: 'utf8' } as const
  assert.equal(execFileSync('/usr/sbin/chroot', [user, image.root, ...program], options), '10')
})

test('image: starts with a read-only root as process 1, serves, and stops', async () => {
  await using etcd = await startEtcd()
  // The address is a name: reading /etc/hosts must work in the image.
  const endpoint = etcd.endpoints.join(',').replace('127.0.0.1', 'localhost')
  await using server = await Tidings.start([`--etcd-servers=${endpoint}`], {}, image.command())
  await server.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
  assert.equal((await server.ask('/livez')).status, 200)
  await assertPageIsServed(server)
  const pid = childOf(server.process.pid ?? 0)
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  assert.match(status, /^NSpid:\t\d+\t1$/m)
  assert.match(status, new RegExp(`^Uid:\\t${USER}\\t${USER}\\t${USER}\\t${USER}$`, 'm'))
  assert.match(status, /^CapEff:\t0+$/m)
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')
  assert.match(mounts.find((line) => line.split(' ')[4] === '/') ?? '', / ro[, ]/)
  assert.equal(statSync(join(server.folder, 'tidings.key')).uid, USER)
  process.kill(pid, 'SIGTERM')
  assert.deepEqual(await server.ended, { code: 0, signal: null })
})

/** The program in its own process namespace; its parent is `unshare`. */
function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim())
}
