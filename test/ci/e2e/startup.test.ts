import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, copyFileSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { runToEnd, startAsInit, startProgram, Tidings } from '../../support/tidings.ts'

/** The start-up step that reads the etcd credentials; a file that cannot be read blocks it. */
const HELD_STEP = 'poststarthook/generic-apiserver-start-informers'

const mayUnshare = spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0

/** These run in parallel, since they mostly wait. */
describe('start-up', { concurrency: 4 }, () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-startup-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('a blocked step leaves livez green for the grace period, red after it, and green when it is done', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const [caFile, certFile, keyFile] = ['ca.crt', 'client.crt', 'client.key'].map((name) =>
      join(folder, name),
    ) as [string, string, string]
    writeFileSync(certFile, etcd.tls?.cert ?? '')
    writeFileSync(keyFile, etcd.tls?.key ?? '')
    // Reading a named pipe blocks until there is a writer, like reading a secret that is slow to
    // mount.
    execFileSync('mkfifo', [caFile])

    const spawnedAt = performance.now()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--etcd-cafile=${caFile}`,
      `--etcd-certfile=${certFile}`,
      `--etcd-keyfile=${keyFile}`,
      '--livez-grace-period=10s',
    ])
    const answeredAt = performance.now()
    assert.deepEqual(await status(server, '/livez'), 200)
    assert.deepEqual(await status(server, `/livez/${HELD_STEP}`), 200)
    assert.deepEqual(await status(server, `/healthz`), 500)
    const ready = await server.ask('/readyz')
    assert.equal(ready.status, 500)
    assert.match(ready.body, new RegExp(`^\\[-\\]${HELD_STEP} failed: reason withheld$`, 'm'))
    assert.equal(
      (await server.ask(`/readyz/${HELD_STEP}`)).body,
      'internal server error: not finished\n',
    )
    assert.equal(
      (await server.ask('/readyz/datastore')).body,
      'internal server error: etcd client connection not yet established\n',
    )

    await server.until('/livez', (answer) => answer.status === 500, 12_000)
    const redAt = performance.now()
    // The grace period begins at the start of the process: after the spawn, before the first
    // response.
    assert.ok(redAt - spawnedAt >= 10_000, `red ${redAt - spawnedAt} ms after the spawn`)
    assert.ok(redAt - answeredAt < 11_000, `red ${redAt - answeredAt} ms after the first response`)
    assert.match((await server.ask('/livez')).body, new RegExp(`^\\[-\\]${HELD_STEP} failed`, 'm'))

    writeFileSync(caFile, etcd.tls?.ca ?? '')
    await server.until('/livez', (answer) => answer.status === 200, 3000)
    await server.until('/readyz', (answer) => answer.status === 200, 8000)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`one ${signal} ends a process with a hanging read normally`, async () => {
      const caFile = join(folder, `never-${signal}.crt`)
      execFileSync('mkfifo', [caFile])
      await using server = await Tidings.start([
        '--etcd-servers=https://127.0.0.1:1',
        `--etcd-cafile=${caFile}`,
      ])
      server.kill(signal)
      const end = await Promise.race([server.ended, sleep(5000)])
      assert.deepEqual(end, { code: 0, signal: null })
      assert.ok(server.log.some(({ name }) => name === 'HTTPServerStoppedListening'))
    })
  }

  test('a second signal does not wait for a hanging read', async () => {
    const caFile = join(folder, 'never-twice.crt')
    execFileSync('mkfifo', [caFile])
    await using server = await Tidings.start([
      '--etcd-servers=https://127.0.0.1:1',
      `--etcd-cafile=${caFile}`,
      '--shutdown-delay-duration=30s',
    ])
    server.kill('SIGTERM')
    await server.logged('Shutdown event')
    await sleep(700)
    server.kill('SIGTERM')
    const end = await Promise.race([server.ended, sleep(3000)])
    assert.deepEqual(end, { code: 1, signal: null })
  })

  test('one signal ends a process that does not listen yet because a read hangs', async () => {
    const certFile = join(folder, 'never-serving.crt')
    execFileSync('mkfifo', [certFile])
    const child = startProgram(servedFrom(certFile))
    const ended = once(child, 'exit')
    const writer = await whenRead(certFile)
    child.kill('SIGTERM')
    const end = await Promise.race([ended, sleep(5000)])
    child.kill('SIGKILL')
    closeSync(writer)
    assert.deepEqual(end, [0, null])
  })

  // The kernel drops signals that such a process sends itself and has no handler for.
  test('the first process of a container ends although a read hangs', {
    skip: mayUnshare ? false : 'needs root for a PID namespace',
  }, async () => {
    const certFile = join(folder, 'never-init.crt')
    execFileSync('mkfifo', [certFile])
    const child = startAsInit(servedFrom(certFile))
    const ended = once(child, 'exit')
    const writer = await whenRead(certFile)
    const { pid } = child
    process.kill(Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')), 'SIGTERM')
    const end = await Promise.race([ended, sleep(5000)])
    child.kill('SIGKILL')
    closeSync(writer)
    assert.deepEqual(end, [0, null])
  })

  test('a start that fails ends the process, although a read hangs', async () => {
    const caFile = join(folder, 'never-failing.crt')
    execFileSync('mkfifo', [caFile])
    const child = startProgram([
      '--secure-port=0',
      `--cert-dir=${folder}`,
      '--etcd-servers=https://127.0.0.1:1',
      `--etcd-cafile=${caFile}`,
      `--etcd-certfile=${join(folder, 'nowhere.crt')}`,
      `--etcd-keyfile=${join(folder, 'nowhere.key')}`,
    ])
    const end = await Promise.race([once(child, 'exit'), sleep(20_000)])
    child.kill('SIGKILL')
    assert.deepEqual(end, [1, null])
  })

  test('a missing credentials file ends the process, with the reason', async () => {
    const { code, stderr } = await runToEnd([
      '--secure-port=0',
      `--cert-dir=${folder}`,
      '--etcd-servers=https://127.0.0.1:1',
      `--etcd-cafile=${join(folder, 'nowhere.crt')}`,
    ])
    assert.equal(code, 1)
    assert.match(stderr, /start-up step generic-apiserver-start-informers failed/)
    assert.match(stderr, /nowhere\.crt/)
  })

  test('a serving certificate that cannot be created ends the process, with the fix', async () => {
    const file = join(folder, 'not-a-folder')
    writeFileSync(file, '')
    const { code, stderr } = await runToEnd([
      '--secure-port=0',
      `--cert-dir=${file}/certs`,
      '--etcd-servers=http://127.0.0.1:1',
    ])
    assert.equal(code, 1)
    assert.match(stderr, /--cert-dir/)
  })

  test('a certificate file that is replaced at run time is presented to the next client', async () => {
    await using first = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    await using second = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    copyFileSync(join(second.folder, 'tidings.key'), join(first.folder, 'tidings.key'))
    await sleep(1500)
    // Key and certificate do not match now: the old pair must stay in use.
    assert.equal(await status(first, '/livez'), 200)
    await first.logged('Serving certificate not reloaded')
    copyFileSync(join(second.folder, 'tidings.crt'), join(first.folder, 'tidings.crt'))
    await first.logged('Serving certificate reloaded')
    await assert.rejects(first.ask('/livez'), 'the old certificate must be gone')
    assert.equal((await first.ask('/livez', { ca: second.ca })).status, 200)
  })
})

async function status(server: Tidings, path: string): Promise<number> {
  return (await server.ask(path)).status
}

/** Waits until the pipe is opened for reading. The reader then blocks, since nothing is written. */
async function whenRead(pipe: string): Promise<number> {
  let writer: number | undefined
  await eventually(
    'the pipe is read',
    () => {
      try {
        writer = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
        return true
      } catch {
        // The other end is not open yet.
        return false
      }
    },
    15_000,
  )
  return writer ?? -1
}

/** Flags without an etcd, and with a certificate that has to be read first. */
function servedFrom(certFile: string): readonly string[] {
  return [
    '--secure-port=0',
    '--etcd-servers=http://127.0.0.1:1',
    `--tls-cert-file=${certFile}`,
    `--tls-private-key-file=${certFile}`,
  ]
}
