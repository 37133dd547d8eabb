import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import https from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startDev } from '../../support/dev-server.ts'
import { runToEnd } from '../../support/tidings.ts'

const root = join(import.meta.dirname, '../../..')

describe('command line', () => {
  test('--help prints every flag to standard output and exits with 0', async () => {
    const { code, stdout, stderr } = await runToEnd(['--help'])
    assert.equal(code, 0)
    assert.equal(stderr, '')
    for (const flag of ['--etcd-servers', '--livez-grace-period', '--shutdown-delay-duration']) {
      assert.ok(stdout.includes(flag), flag)
    }
  })

  test('--version prints the release and, where it is known, the commit', async () => {
    const { code, stdout } = await runToEnd(['--version'])
    assert.equal(code, 0)
    const build = JSON.parse(await readFile(join(root, 'dist/build.json'), 'utf8'))
    const commit = String(build.gitCommit).slice(0, 12)
    const rest = String.raw`Kubernetes v1\.37\.\d+, Node v24\.\d+\.\d+`
    const known = commit === '' ? '' : `commit ${commit}( with changes)?, `
    assert.match(stdout, new RegExp(String.raw`^tidings v\d+\.\d+\.\d+ \(${known}${rest}\)\n$`))
  })

  test('npm start before a build prints what to do', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-unbuilt-'))
    try {
      await mkdir(join(folder, 'tools'))
      for (const file of ['package.json', 'tools/check-build.cjs']) {
        await copyFile(join(root, file), join(folder, file))
      }
      const start = promisify(execFile)('npm', ['start'], { cwd: folder })
      await assert.rejects(start, { code: 1, stderr: /run "npm run build" first\n$/m })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('all errors in flags are reported at once, with exit code 2', async () => {
    const { code, stdout, stderr } = await runToEnd([
      '--secure-prt=1',
      '--livez-grace-period=10',
      '--tls-cert-file=a.crt',
    ])
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, /--secure-prt/)
    assert.match(stderr, /--livez-grace-period/)
    assert.match(stderr, /--tls-private-key-file/)
    assert.match(stderr, /--etcd-servers is required/)
  })

  test('a port that is taken ends the process with 1 and an error message', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as { port: number }
    const folder = execFileSync('mktemp', ['-d'], { encoding: 'utf8' }).trim()
    const { code, stderr } = await runToEnd([
      '--etcd-servers=http://127.0.0.1:1',
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${folder}`,
    ])
    holder.close()
    assert.equal(code, 1)
    assert.match(stderr, /EADDRINUSE/)
  })
})

describe('tidings dev', () => {
  test('the lines that dev prints work as printed, and nothing is left after Ctrl-C', async (context) => {
    const dev = await startDev()
    // A process that a failure leaves behind would keep this file from ending.
    context.after(() => dev.child.kill('SIGKILL'))
    const folder = dev.folder
    assert.ok(existsSync(folder))
    const token = /^ {2}token {4}(\S+)$/m.exec(dev.lines.join('\n'))?.[1] ?? assert.fail('no token')
    assert.ok(readFileSync(join(folder, 'kubeconfig'), 'utf8').includes(token))
    for (const [path, expected] of [
      ['/readyz?verbose', /healthz check passed\n$/],
      ['/livez', /^ok$/],
      ['/readyz/datastore', /^ok$/],
      ['/version', /"gitVersion"/],
      ['/events', /"kind": "EventList"/],
    ] as const) {
      const line = dev.lines.find((text) => text.includes(`${path}'`))
      assert.ok(line, `a line for ${path}`)
      const output = execFileSync('sh', ['-c', `${line} --silent --max-time 10`], {
        encoding: 'utf8',
      })
      assert.match(output, expected)
    }
    dev.child.kill('SIGINT')
    const [code] = await once(dev.child, 'exit')
    assert.equal(code, 0)
    assert.equal(existsSync(folder), false, 'the folder is gone')
    assert.deepEqual(etcdProcesses(folder), [], 'etcd is gone')
  })

  test('the etcd of dev responds to nobody without its key, on any port', async () => {
    const dev = await startDev()
    try {
      const [pid] = etcdProcesses(dev.folder)
      const flags = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const ports = flags
        .filter((flag) => flag.startsWith('--listen-'))
        .map((flag) => /:\/\/127\.0\.0\.1:(\d+)$/.exec(flag)?.[1] ?? assert.fail(flag))
      assert.equal(ports.length, 3)
      const body = JSON.stringify({ key: 'AA==', range_end: 'AA==' })
      const key = await readFile(join(dev.folder, 'etcd.key'))
      const cert = await readFile(join(dev.folder, 'etcd.crt'))
      for (const port of ports) {
        for (const path of ['/v3/kv/range', '/health', '/metrics', '/version', '/members']) {
          const url = `127.0.0.1:${port}${path}`
          const plain = await fetch(`http://${url}`, { method: 'POST', body }).then(
            ({ status }) => status,
            () => 'refused',
          )
          assert.ok(plain === 'refused' || plain === 400, `http://${url}: ${plain}`)
          // The certificate is no secret that etcd would accept without its key.
          await assert.rejects(answerOf(url, { ca: cert }), `https://${url}`)
        }
      }
      const answers = await Promise.all(
        ports.map((port) => answerOf(`127.0.0.1:${port}/v3/kv/range`, { ca: cert, cert, key })),
      )
      assert.ok(!answers.includes(200), `a gateway responds: ${answers}`)
      for (const file of ['etcd.key', 'etcd.crt']) {
        assert.equal((await stat(join(dev.folder, file))).mode & 0o777, 0o600)
      }
    } finally {
      dev.child.kill('SIGINT')
      await once(dev.child, 'exit')
    }
  })

  test('the etcd of dev keeps little of its log in memory, and does not outlive dev, even when that is killed', async () => {
    const dev = await startDev()
    const [pid] = etcdProcesses(dev.folder)
    const flags = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    assert.ok(flags.includes('--snapshot-count=1000'))
    assert.ok(flags.some((flag) => /^--(experimental-)?snapshot-catchup-entries=100$/.test(flag)))
    dev.child.kill('SIGKILL')
    await once(dev.child, 'exit')
    for (let wait = 0; wait < 50 && etcdProcesses(dev.folder).length > 0; wait++) await sleep(100)
    assert.deepEqual(etcdProcesses(dev.folder), [])
    execFileSync('rm', ['-rf', dev.folder])
  })

  test('ends with an error when its etcd dies', async () => {
    const dev = await startDev()
    const [pid] = etcdProcesses(dev.folder)
    process.kill(Number(pid), 'SIGKILL')
    const [code] = await once(dev.child, 'exit')
    assert.equal(code, 1)
    assert.match(dev.stderr(), /etcd/)
    assert.equal(existsSync(dev.folder), false)
  })

  test('a start in the same folder has the same port and token, unless the port is in use', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-again-'))
    context.after(() => rm(folder, { recursive: true, force: true }))
    const start = async (): Promise<{ url: URL; text: string; end: () => Promise<void> }> => {
      const { child, lines } = await startDev([`--data-dir=${folder}`])
      context.after(() => child.kill('SIGKILL'))
      const text = lines.join('\n')
      const [, url = ''] = /^ {2}tidings {2}(\S+)$/m.exec(text) ?? []
      const end = async (): Promise<void> => {
        child.kill('SIGINT')
        await once(child, 'exit')
      }
      return { url: new URL(url), text, end }
    }
    const first = await start()
    const copied = JSON.parse(readFileSync(join(folder, 'kubeconfig'), 'utf8'))
    const ca = readFileSync(copied.clusters[0].cluster['certificate-authority'])
    await first.end()

    const second = await start()
    assert.equal(second.url.port, first.url.port)
    assert.doesNotMatch(second.text, /in use/)
    const events = `${copied.clusters[0].cluster.server}/api/v1/events`
    const authorization = `Bearer ${copied.users[0].user.token}`
    assert.equal(await statusOf(events, { ca, headers: { authorization } }), 200)
    await second.end()

    const holder = createServer().listen(Number(first.url.port), '127.0.0.1')
    await once(holder, 'listening')
    context.after(() => holder.close())
    const third = await start()
    assert.notEqual(third.url.port, first.url.port)
    assert.match(third.text, new RegExp(`Port ${first.url.port} is in use by another program`))
    await third.end()
  })

  test('prints what to do without an etcd program', async () => {
    const { code, stderr } = await runToEnd(['dev', '--etcd-binary=/nowhere/etcd'])
    assert.equal(code, 1)
    assert.match(stderr, /\/nowhere\/etcd/)
  })
})

/** Starts `tidings dev` and waits until it has printed its instructions. */
/** Process ids of etcds whose data is under this folder. */
function etcdProcesses(folder: string): string[] {
  try {
    const found = execFileSync('pgrep', ['-f', `data-dir=${folder}`], { encoding: 'utf8' })
    return found.split('\n').filter((line) => line !== '')
  } catch {
    // pgrep exits with 1 when there are none.
    return []
  }
}

/** The status of a GET over TLS. */
function statusOf(url: string, options: https.RequestOptions): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    https
      .get(url, { ...options, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      .on('error', reject)
  })
}

/** The status of a POST over TLS; rejects when the server ends the connection. */
function answerOf(url: string, tls: https.RequestOptions): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    https
      .request(`https://${url}`, { ...tls, method: 'POST', agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      .on('error', reject)
      .end('{}')
  })
}
