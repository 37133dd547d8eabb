import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { smallLog } from '../../../src/dev/dev.ts'
import { EtcdProcess } from '../../../src/dev/etcd-process.ts'
import { pause } from '../../../src/lib/abort.ts'
import { otherEtcds } from '../../../tools/other-etcds.ts'
import { etcdBinary } from '../../support/etcd.ts'
import { reserveEtcdPorts } from '../../support/ports.ts'

/** Whether the process runs; a zombie that waits to be reaped does not count. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe('EtcdProcess', { concurrency: true }, () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-etcd-process-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('start resolves when etcd serves, and stop leaves no process', async () => {
    const etcd = await EtcdProcess.start({ binary: etcdBinary, dataDir: join(folder, 'a') })
    const response = await fetch(`${etcd.endpoint}/version`)
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    assert.equal(isAlive(etcd.pid), true)
    await etcd.stop()
    assert.equal(isAlive(etcd.pid), false)
    await etcd.stop()
    await etcd.exited
  })

  test('stop ends an etcd that is paused', async () => {
    const etcd = await EtcdProcess.start({ binary: etcdBinary, dataDir: join(folder, 'b') })
    etcd.signal('SIGSTOP')
    await etcd.stop()
    assert.equal(isAlive(etcd.pid), false)
  })

  for (const binary of [etcdBinary, ...otherEtcds.map(({ program }) => program)]) {
    test(`${basename(binary)} accepts the flags of tidings dev`, async () => {
      const dataDir = join(folder, `flags-${basename(binary)}`)
      const etcd = await EtcdProcess.start({ binary, dataDir, args: await smallLog(binary) })
      await etcd.stop()
    })
  }

  test('start rejects with the output of an etcd that exits at once', async () => {
    const starting = EtcdProcess.start({
      binary: etcdBinary,
      dataDir: join(folder, 'c'),
      args: ['--no-such-flag'],
    })
    await assert.rejects(starting, /exited while starting[\s\S]*no-such-flag/)
  })

  test('start rejects when etcd does not serve in time, and ends the process', async () => {
    const ports = await reserveEtcdPorts()
    const starting = EtcdProcess.start({
      binary: etcdBinary,
      dataDir: join(folder, 'd'),
      ports,
      name: 'one',
      cluster: [
        { name: 'one', peerPort: ports.peer },
        { name: 'missing', peerPort: 1 },
      ],
      startTimeoutMs: 1_500,
    })
    await assert.rejects(starting, /not healthy after 1500 ms[\s\S]*\{"level"/)
  })

  test('start rejects when the given port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const taken = typeof address === 'object' ? (address?.port ?? 0) : 0
    const ports = { ...(await reserveEtcdPorts()), client: taken }
    const starting = EtcdProcess.start({ binary: etcdBinary, dataDir: join(folder, 'e'), ports })
    await assert.rejects(starting, /address already in use/)
    server.close()
  })

  test('start rejects when the program does not exist', async () => {
    const starting = EtcdProcess.start({ binary: join(folder, 'none'), dataDir: join(folder, 'f') })
    await assert.rejects(starting, /ENOENT/)
  })

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`etcd does not outlive a parent that is ended by ${signal}`, async () => {
      const script = `
        import { EtcdProcess } from ${JSON.stringify(new URL('../../../src/dev/etcd-process.ts', import.meta.url).href)}
        const [binary, dataDir] = process.argv.slice(1)
        const etcd = await EtcdProcess.start({ binary, dataDir })
        process.stdout.write(String(etcd.pid))
        setInterval(() => {}, 1000)
      `
      const dataDir = join(folder, signal)
      const parent = spawn(
        process.execPath,
        ['--input-type=module', '-e', script, etcdBinary, dataDir],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      const [chunk] = await once(parent.stdout, 'data')
      const pid = Number(chunk)
      assert.equal(isAlive(pid), true)
      parent.kill(signal)
      const deadline = performance.now() + 5_000
      while (isAlive(pid) && performance.now() < deadline) await pause(20)
      assert.equal(isAlive(pid), false)
    })
  }
})
