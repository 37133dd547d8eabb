import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd } from '../support/etcd.ts'
import { runToEnd, Tidings } from '../support/tidings.ts'

/** The start-up step that reads the etcd credentials; a file that does not come holds it up. */
const HELD_STEP = 'poststarthook/generic-apiserver-start-informers'

describe('start-up', () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-startup-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('a step held up: livez green for the grace period and red after it, green when it is done', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const [caFile, certFile, keyFile] = ['ca.crt', 'client.crt', 'client.key'].map((name) =>
      join(folder, name),
    ) as [string, string, string]
    writeFileSync(certFile, etcd.tls?.cert ?? '')
    writeFileSync(keyFile, etcd.tls?.key ?? '')
    // Reading a named pipe waits for a writer, as reading a secret that is slow to mount would.
    execFileSync('mkfifo', [caFile])

    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--etcd-cafile=${caFile}`,
      `--etcd-certfile=${certFile}`,
      `--etcd-keyfile=${keyFile}`,
      '--livez-grace-period=10s',
    ])
    const startedAt = performance.now()
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
    const redAfterMs = performance.now() - startedAt
    // The grace period counts from the start of the process, a moment before it could be asked.
    assert.ok(redAfterMs > 8500 && redAfterMs < 11_000, `red after ${redAfterMs} ms`)
    assert.match((await server.ask('/livez')).body, new RegExp(`^\\[-\\]${HELD_STEP} failed`, 'm'))

    writeFileSync(caFile, etcd.tls?.ca ?? '')
    await server.until('/livez', (answer) => answer.status === 200, 3000)
    await server.until('/readyz', (answer) => answer.status === 200, 8000)
  })

  test('a second signal ends a process whose read hangs', async () => {
    const caFile = join(folder, 'never.crt')
    execFileSync('mkfifo', [caFile])
    await using server = await Tidings.start([
      '--etcd-servers=https://127.0.0.1:1',
      `--etcd-cafile=${caFile}`,
    ])
    server.kill('SIGTERM')
    await server.logged('Shutdown event')
    await sleep(1500)
    server.kill('SIGTERM')
    const end = await Promise.race([server.ended, sleep(3000)])
    assert.deepEqual(end, { code: null, signal: 'SIGTERM' })
  })

  test('a credentials file that is not there ends the process, with the reason', async () => {
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

  test('a serving certificate that cannot be had ends the process, with the way out', async () => {
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

  test('a certificate file swapped while serving is shown to the next client', async () => {
    await using first = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    await using second = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    copyFileSync(join(second.folder, 'tidings.key'), join(first.folder, 'tidings.key'))
    await sleep(1500)
    // Key and certificate do not fit together now: the old pair must go on working.
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
