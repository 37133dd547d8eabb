/** The release archive in `release/`, unpacked: `npm test -- release` makes it first. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { linksOf } from '../../../tools/markdown.ts'
import { packageJson, releaseFolder, root } from '../../../tools/release/project.ts'
import {
  pagePackages,
  type RuntimePackage,
  runtimePackages,
} from '../../../tools/release/runtime-packages.ts'
import { archiveName, stage } from '../../../tools/release/staging.ts'
import { startEtcd } from '../../support/etcd.ts'
import { assertPageIsServed } from '../../support/served-page.ts'
import { Tidings } from '../../support/tidings.ts'

const READY_MS_MAX = 60_000
const name = archiveName('x64')
const work = mkdtempSync(join(tmpdir(), 'tidings archive-'))
const unpacked = join(work, name)
execFileSync('tar', ['-xzf', join(releaseFolder, `${name}.tar.gz`), '-C', work])
after(() => rmSync(work, { recursive: true }))

test('archive: another staging of the same commit has the same files, modes and bytes', () => {
  const again = join(work, 'again')
  const umask = process.umask(0o077)
  try {
    stage('x64', again)
  } finally {
    process.umask(umask)
  }
  assert.deepEqual(contentOf(again), contentOf(unpacked))
})

test('archive: files belong to nobody in particular and have the time of the commit', () => {
  const list = execFileSync('tar', ['-tvzf', join(releaseFolder, `${name}.tar.gz`)], {
    encoding: 'utf8',
  })
  const lines = list.trim().split('\n')
  const times = new Set(lines.map((line) => line.split(/ +/).slice(3, 5).join(' ')))
  assert.equal(times.size, 1)
  assert.deepEqual(
    lines.filter((line) => !/^[-d]rw[-x]r-[-x]r-[-x] (root\/root|0\/0) /.test(line)),
    [],
  )
})

test('archive: has the packages that the program needs, and no others', () => {
  const installed = readdirSync(join(unpacked, 'lib/tidings'), {
    recursive: true,
    encoding: 'utf8',
  })
    .filter((path) => /(^|\/)node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(path))
    .map((path) => path.slice(0, -'/package.json'.length))
  const expected = runtimePackages('x64').map(({ path }) => path)
  assert.deepEqual(installed.sort(), [...expected].sort())
})

test('archive: another process loads DuckDB from it, and reads Parquet', () => {
  const program = join(unpacked, 'lib/tidings')
  const file = join(work, 'numbers.parquet')
  const script = `
    const { DuckDBInstance } = await import('@duckdb/node-api')
    const connection = await (await DuckDBInstance.create()).connect()
    await connection.run("COPY (SELECT range AS n FROM range(5)) TO '${file}' (COMPRESSION zstd)")
    const reader = await connection.runAndReadAll("SELECT sum(n)::INTEGER FROM '${file}'")
    process.stdout.write(String(reader.getRows()[0]?.[0]))`
  const node = join(unpacked, 'lib/node/bin/node')
  const args = ['--input-type=module', '--eval', script]
  assert.equal(execFileSync(node, args, { cwd: program, env: {}, encoding: 'utf8' }), '10')
})

test('archive: says which packages are built into its page, and has no map of it', () => {
  const page = join(unpacked, 'lib/tidings/dist/ui')
  const built: readonly string[] = JSON.parse(readFileSync(join(page, 'packages.json'), 'utf8'))
  assert.deepEqual(
    pagePackages().map(({ path }) => path),
    built,
  )
  // Nothing else is worth its bytes: docs/dependencies.md.
  assert.deepEqual(built, ['node_modules/preact', 'node_modules/uplot'])
  const scripts = readdirSync(join(page, 'assets')).filter((file) => file.endsWith('.js'))
  assert.equal(scripts.length, 1)
  for (const script of scripts) {
    const text = readFileSync(join(page, 'assets', script), 'utf8')
    assert.doesNotMatch(text, /sourceMappingURL|node_modules/)
    assert.ok(!text.includes(root))
  }
})

test('archive: has the text of every licence, and a table of all packages', () => {
  const table = readFileSync(join(unpacked, 'licenses/README.md'), 'utf8')
  for (const { name: of, version, licence, reason } of releasedPackages()) {
    assert.ok(table.includes(`| ${of} | ${version} | ${licence} | ${reason} |`), of)
    const texts = readdirSync(join(unpacked, 'licenses', `${of}-${version}`))
    assert.ok(texts.length > 0, of)
  }
  assert.match(
    readFileSync(join(unpacked, 'licenses/node/LICENSE'), 'utf8'),
    /Node\.js is licensed/,
  )
  assert.match(readFileSync(join(unpacked, 'LICENSE'), 'utf8'), /Apache License/)
})

test('archive: its list of components is complete and has nothing of the machine or the moment', () => {
  const text = readFileSync(join(unpacked, 'sbom.cdx.json'), 'utf8')
  const { components, metadata } = JSON.parse(text)
  const listed = components.map((component: { purl: string }) => component.purl)
  const { version } = packageJson()
  assert.equal(metadata.component.name, 'tidings')
  assert.equal(metadata.component.version, version)
  for (const { name: of, version: its } of releasedPackages()) {
    assert.ok(listed.includes(`pkg:npm/${of.replace('@', '%40')}@${its}`), of)
  }
  assert.ok(listed.includes(`pkg:generic/node@${process.versions.node}`))
  assert.equal(text, readFileSync(join(releaseFolder, `${name}.cdx.json`), 'utf8'))
})

test('archive: the links of its pages lead to files that it has', () => {
  const pages = readdirSync(unpacked, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.md') && !/^(lib|licenses)\//.test(path),
  )
  assert.ok(pages.length > 20)
  const broken = pages.flatMap((page) =>
    linksOf(readFileSync(join(unpacked, page), 'utf8'))
      .map(({ target }) => target.replace(/#.*$/, ''))
      .filter((target) => !existsSync(join(unpacked, page, '..', target)))
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

test('archive: the sums are those of the files', () => {
  const sums = readFileSync(join(releaseFolder, 'SHA256SUMS'), 'utf8')
  assert.ok(sums.includes(`  ${name}.tar.gz\n`))
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: releaseFolder })
})

test('archive: starts through a link, without node or npm in PATH, serves, and stops', async () => {
  await using etcd = await startEtcd()
  const links = join(work, 'links')
  mkdirSync(links)
  symlinkSync(`../${name}/bin/tidings`, join(links, 'first'))
  symlinkSync('first', join(links, 'second'))
  const path = onlyPath()
  const command = ['env', '-i', '-C', '/', `PATH=${path}`, join(links, 'second')]
  await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints}`], {}, command)
  await server.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
  await assertPageIsServed(server)
  const version = JSON.parse((await server.ask('/version')).body)
  assert.ok(version.gitVersion.endsWith(`tidings-${packageJson().version}`))
  server.process.kill('SIGTERM')
  assert.deepEqual(await server.ended, { code: 0, signal: null })
})

test("archive: the user's NODE_OPTIONS reach the program, and win over those of the launcher", () => {
  const hook = join(work, 'hook.cjs')
  writeFileSync(
    hook,
    'process.stderr.write(JSON.stringify(process.execArgv) + process.env.MALLOC_ARENA_MAX)',
  )
  const own = '["--max-semi-space-size=8"]1tidings v'
  assert.ok(runVersion(`--require="${hook}"`).startsWith(own))
  assert.match(runVersion(`--require="${hook}" --max-semi-space-size=64`), /^\[\]1tidings v/)
})

test('archive: the systemd unit names what the archive has', () => {
  const unit = readFileSync(join(unpacked, 'share/systemd/tidings.service'), 'utf8')
  const [, program = ''] = /^ExecStart=\/opt\/tidings\/(\S+)/m.exec(unit) ?? []
  assert.ok(existsSync(join(unpacked, program)))
  const flags = /^ExecStart=\S+ (.*)$/m.exec(unit)?.[1]?.split(' ') ?? []
  const help = execFileSync(join(unpacked, program), ['--help'], { encoding: 'utf8' })
  for (const flag of flags) assert.ok(help.includes(flag.replace(/=.*/, '')), flag)
})

function releasedPackages(): readonly RuntimePackage[] {
  return [...runtimePackages('x64'), ...pagePackages()]
}

/** A folder for PATH with nothing in it but what a launcher may use of any Linux. */
function onlyPath(): string {
  const folder = join(work, 'path')
  mkdirSync(folder)
  symlinkSync('/usr/bin/readlink', join(folder, 'readlink'))
  return folder
}

function runVersion(options: string): string {
  const program = join(unpacked, 'bin/tidings')
  return execFileSync('sh', ['-c', '"$0" --version 2>&1', program], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', NODE_OPTIONS: options },
  })
}

/** Path, mode and hash of everything. */
function contentOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((path) => {
      const found = lstatSync(join(folder, path))
      const hash = found.isFile()
        ? createHash('sha256')
            .update(readFileSync(join(folder, path)))
            .digest('hex')
        : ''
      return `${path} ${found.mode.toString(8)} ${hash}`
    })
}
