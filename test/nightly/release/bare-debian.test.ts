/**
 * Follows "Try it in three commands" of docs/how-to/install.md literally, on a bare Debian 12 and 13
 * made by mmdebstrap, and with podman. Needs root, mmdebstrap and the machine's Debian mirror.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { releaseFolder, root } from '../../../tools/release/project.ts'
import { archiveName } from '../../../tools/release/staging.ts'

const UP_MS_MAX = 300_000
const page = readFileSync(join(root, 'docs/how-to/install.md'), 'utf8')
const work = mkdtempSync(join(tmpdir(), 'tidings-bare-'))
after(() => rmSync(work, { recursive: true, force: true }))

for (const suite of ['bookworm', 'trixie']) {
  test(`install: three commands on a bare Debian (${suite})`, {
    skip: missing('mmdebstrap'),
  }, async () => {
    const debian = join(work, suite)
    execFileSync('mmdebstrap', ['--quiet', '--variant=apt', suite, debian, mirror()])
    cpSync(
      join(releaseFolder, `${archiveName('x64')}.tar.gz`),
      join(debian, 'root', `${archiveName('x64')}.tar.gz`),
    )
    // An installer writes both files.
    for (const file of ['/etc/resolv.conf', '/etc/hosts']) cpSync(file, join(debian, file))
    // How this machine reaches its mirror, which may be a copy with an old date.
    cpSync('/etc/apt/apt.conf.d', join(debian, 'etc/apt/apt.conf.d'), { recursive: true })
    const start = `
      mount --bind /dev "$0/dev"
      exec unshare --mount-proc="$0/proc" chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec "cd /root; $1"`
    const [[unpack = '', run = ''] = [], [look = ''] = []] = commandsIn(
      '## Try it in three commands',
    )
    const inside = (line: string): readonly string[] => [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      'sh',
      '-ec',
      start,
      debian,
      line,
    ]
    execFileSync(
      'unshare',
      inside(`! command -v node && ! command -v etcd && ! command -v kubectl && ${unpack}`),
    )
    const events = (): string =>
      execFileSync('unshare', inside(`${look} 2>&1`), { encoding: 'utf8' })
    // unshare passes no other signal on; with it ends everything in its namespace.
    await whileUp(spawn('unshare', inside(run)), events, 'SIGKILL')
  })
}

test('install: three commands with the image', { skip: missing('podman', 'runc') }, async () => {
  const folder = join(work, 'podman')
  cpSync(
    join(releaseFolder, `${archiveName('x64')}.oci.tar`),
    join(folder, `${archiveName('x64')}.oci.tar`),
  )
  execFileSync('tar', ['-xzf', join(releaseFolder, `${archiveName('x64')}.tar.gz`), '-C', folder])
  const [[fetch = ''] = [], [load = '', run = ''] = [], [look = ''] = []] =
    commandsIn('### With the image')
  const inside = (line: string): readonly string[] => ['-ec', podman(line, folder)]
  execFileSync('sh', inside(fetch), { cwd: folder })
  execFileSync('sh', inside(load), { cwd: folder, stdio: 'ignore' })
  const events = (): string =>
    execFileSync('sh', inside(`${look} 2>&1`), { cwd: folder, encoding: 'utf8' })
  await whileUp(spawn('sh', inside(`exec ${run}`), { cwd: folder }), events, 'SIGTERM')
})

/** The lines of each block of commands of a section. */
function commandsIn(heading: string): readonly (readonly string[])[] {
  const from = page.indexOf(`\n${heading}\n`)
  const section = page.slice(from + 1).split(/\n##+ /)[0] ?? ''
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) =>
    text.trim().split('\n'),
  )
}

/** Storage of its own, and limits that a machine without all rights can set. */
function podman(line: string, folder: string): string {
  const storage = `--root=${folder}/storage --runroot=${folder}/run --storage-driver=vfs --cgroup-manager=cgroupfs --runtime=runc`
  const limits = '--ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024'
  return line.replace('podman ', `podman ${storage} `).replace(' run --rm ', ` run ${limits} --rm `)
}

/** Waits for the banner, looks at the events, and stops the server. */
async function whileUp(
  child: ChildProcess,
  look: () => string,
  signal: NodeJS.Signals,
): Promise<void> {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      said += chunk
    })
  }
  const ended = once(child, 'exit')
  try {
    for (const endsAt = performance.now() + UP_MS_MAX; !said.includes('Ctrl-C'); ) {
      assert.ok(performance.now() < endsAt && child.exitCode === null, said)
      await sleep(100)
    }
    assert.match(look(), /No resources found/)
  } finally {
    child.kill(signal)
    await ended
  }
}

function missing(...programs: readonly string[]): string | false {
  const absent = programs.filter((name) => spawnSync('which', [name]).status !== 0)
  return absent.length > 0 && `needs ${absent.join(' and ')}`
}

/** The machine's own, from its list of sources. */
function mirror(): string {
  const text = execFileSync(
    'sh',
    ['-c', 'cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null || true'],
    { encoding: 'utf8' },
  )
  return /[a-z+]+:\/\/\S+\/debian(?=\/?\s)/.exec(text)?.[0] ?? ''
}
