import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { serverCommand } from '../../../src/options/commands.ts'
import { parseFlags } from '../../../src/options/parse.ts'
import { Engine } from '../../../src/server/engine.ts'
import { eventually } from '../../support/eventually.ts'
import { fillUp, startSmallEtcd } from '../../support/full-etcd.ts'

test('a full etcd does not wait for a history that cannot be written', async () => {
  await using stack = new AsyncDisposableStack()
  const etcd = stack.use(await startSmallEtcd())
  const folder = await mkdtemp(join(tmpdir(), 'tidings-full-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const notFolder = join(folder, 'file')
  await writeFile(notFolder, '')
  const parsed = parseFlags(serverCommand, [
    `--etcd-servers=${etcd.endpoints.join(',')}`,
    `--history=file://${notFolder}`,
  ])
  assert.ok(parsed.kind === 'run')
  const engine = new Engine({ ...parsed.options, eventTtlMs: 2_000 }, silentLog, new Registry())
  await engine.open((error) => assert.fail(String(error)))
  stack.defer(() => engine.close())
  const { storage } = engine
  const { writes } = engine.forClients
  const body = Buffer.from('{"metadata":{"name":"e","namespace":"n"}}')
  const create = async (): Promise<boolean> =>
    writes.create({ cluster: 'local', namespace: 'n', name: 'e' }, body).then(
      () => true,
      () => false,
    )
  await eventually('an event is written', create, 20_000)
  await eventually('it is in memory', () => storage.count === 1)
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
  stack.defer(() => client.close())
  await new Promise((resolve) => setTimeout(resolve, 4_000))
  assert.equal(storage.count, 1, 'it has expired, and waits for history')
  await fillUp(client)
  await eventually('it is deleted to make room', () => storage.count === 0, 30_000)
})
