import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { etcdctl } from '../../support/full-etcd.ts'
import { kubernetesValue, Stranger } from '../../support/stranger.ts'
import { type Answer, Tidings } from '../../support/tidings.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const EXIT_FOREIGN_ETCD = 78
const TTL_MS = 2000
/** Longer than an election, or the sweep of an expired event. */
const WRITE_MS = 2000

function eventText(name: string): string {
  return JSON.stringify({
    metadata: { name },
    eventTime: '2026-11-15T12:00:00.000000Z',
    reportingController: 'example.com/test',
    reportingInstance: 'test-1',
    action: 'Test',
    reason: 'Tested',
    regarding: { kind: 'Pod', namespace: 'default', name: 'web-0' },
    type: 'Normal',
  })
}

function ask(server: Tidings, method: string, path: string, body?: string): Promise<Answer> {
  const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
  return server.ask(path, { method, headers, ...(body === undefined ? {} : { body }) })
}

const create = (server: Tidings, name: string): Promise<Answer> =>
  ask(server, 'POST', EVENTS, eventText(name))

describe('an etcd with data of another program', { concurrency: 2 }, () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-foreign-'))
    await writeFile(join(folder, 'tokens.csv'), 'secret,ada,1,"system:masters"\n')
  })
  after(() => rm(folder, { recursive: true }))

  const start = (etcd: EtcdCluster, ...flags: readonly string[]): Promise<Tidings> =>
    Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      ...flags,
    ])

  test('control keys that no version writes fail the start, and so do those of the first layout', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    const keys = ['/p1/control/pods/default/web-0', '/p2/events/', '/p3/tidings/compaction']
    const others = ['/p1/control/compaction']
    const value = Buffer.from('{"replica":"a/1","compactedRevision":1}')
    await stranger.put(...[...keys, ...others].map((key) => [key, value] as const))
    for (const key of keys) {
      await using server = await start(etcd, `--etcd-prefix=${key.slice(0, 3)}`)
      assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD, key)
      const { err } = await server.logged('Server failed, exiting')
      assert.match(String(err), new RegExp(`"${key}"`))
      assert.deepEqual(await stranger.read(key), value)
    }
    // The migration step of the changelog.
    await stranger.deleteAll('/p3/tidings/')
    await using server = await start(etcd, '--etcd-prefix=/p3')
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
  })

  test('control keys of another program are neither overwritten nor deleted', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    const entries = [
      ['/app/control/config', 'x'],
      ['/app/control/account', 'alice:100EUR'],
      ['/app/control/ages', 'alice42'],
      ['/app/control/sweeper', 'robot7'],
    ].map(([key = '', value = '']) => [key, Buffer.from(value)] as const)
    await stranger.put(...entries)
    const proposals = await stranger.proposals()
    await using server = await start(etcd, '--etcd-prefix=/app')
    assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD)
    const { err } = await server.logged('Server failed, exiting')
    assert.match(String(err), /"\/app\/control\/account"/)
    for (const [key, value] of entries) assert.deepEqual(await stranger.read(key), value)
    assert.equal(await stranger.read('/app/events/'), undefined)
    assert.equal(await stranger.proposals(), proposals)
  })

  test('control keys of a later version are ignored and kept', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    const entries = [
      '/tidings/control/audit-state',
      '/tidings/control/shards/eu-1.example.org',
    ].map((key) => [key, Buffer.from(`{"replica":"a-1/7","key":"${key}"}`)] as const)
    const known = Buffer.from('{"replica":"a-1/7","compactedRevision":1}')
    await stranger.put(...entries, ['/tidings/control/compaction', known])
    await using server = await start(etcd, `--event-ttl=${TTL_MS}ms`)
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    const line = await server.logged('Unknown control keys are left unchanged')
    assert.deepEqual([line['etcdKey'], line['count']], [entries[0]?.[0], 2])
    assert.equal((await create(server, 'a')).status, 201)
    assert.equal((await ask(server, 'DELETE', EVENTS)).status, 200)
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + WRITE_MS))
    for (const [key, value] of entries) assert.deepEqual(await stranger.read(key), value)
  })

  test('a Kubernetes value after thousands of our own fails the start before a create is accepted', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    for (let from = 0; from < 4500; from += 100) {
      await stranger.put(
        ...Array.from({ length: 100 }, (_, index) => {
          const name = `e${from + index}`
          const value = `{"w":1,"i":${index}}\n{"metadata":{"name":"${name}","namespace":"default"}}`
          return [`/shared/events/local/default/${name}`, Buffer.from(value)] as const
        }),
      )
    }
    await stranger.put(['/shared/events/zoo/zoo/last', kubernetesValue])
    const proposals = await stranger.proposals()
    await using server = await start(etcd, '--etcd-prefix=/shared')
    const answers: number[] = []
    while (server.process.exitCode === null) {
      const answer = await create(server, `n${answers.length}`).catch(() => undefined)
      answers.push(answer?.status ?? 0)
    }
    assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD)
    assert.ok(!answers.includes(201), `${answers}`)
    assert.equal(await stranger.proposals(), proposals)
  })

  test('events of an earlier layout, without a cluster in the key, fail the start with an explanation', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    const value = '{"w":1,"i":0}\n{"metadata":{"name":"a","namespace":"default"}}'
    await stranger.put(['/tidings/events/default/a', Buffer.from(value)])
    const proposals = await stranger.proposals()
    await using server = await start(etcd)
    assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD)
    const { err } = await server.logged('Server failed, exiting')
    assert.match(String(err), /"\/tidings\/events\/default\/a".*whose keys had no cluster/)
    assert.match(String(err), /etcdctl del --prefix \/tidings\/events\//)
    assert.equal(await stranger.proposals(), proposals)
  })

  test('the keys of a cluster stay unchanged beside a server with the default prefix', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    const key = '/registry/events/default/web-0.1'
    await stranger.put([key, kubernetesValue])
    await using server = await start(etcd)
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    assert.equal((await create(server, 'web-0.1')).status, 201)
    await eventually(
      'a sweeper is elected under our prefix',
      async () => (await stranger.read('/tidings/control/sweeper')) !== undefined,
      10_000,
    )
    assert.ok(await stranger.read('/tidings/events/local/default/web-0.1'))
    assert.deepEqual(await stranger.read(key), kubernetesValue)
    const line = await server.logged(
      'Other programs store keys in this etcd; compaction removes their history too',
    )
    assert.deepEqual([line['etcdKey'], line['intervalSeconds']], [key, 300])
  })

  test('a replica that starts while etcd is unavailable writes nothing before it has checked the prefix', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    await stranger.put(['/shared/events/local/default/web-0.1', kubernetesValue])
    await etcd.member(0).kill()
    await using server = await start(etcd, '--etcd-prefix=/shared')
    assert.equal((await create(server, 'early')).status, 503)
    await etcd.member(0).start()
    assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD)
    assert.equal(await stranger.read('/shared/events/local/default/early'), undefined)
    assert.equal(await stranger.read('/shared/control/sweeper'), undefined)
  })

  test('a foreign value that appears later is not served, overwritten, deleted or swept', async () => {
    await using etcd = await startEtcd()
    using stranger = new Stranger(etcd)
    await using server = await start(etcd, `--event-ttl=${TTL_MS}ms`)
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    assert.equal((await create(server, 'replaced')).status, 201)
    const names = ['new', 'replaced']
    const keys = names.map((name) => `/tidings/events/local/default/${name}`)
    await stranger.put(...keys.map((key) => [key, kubernetesValue] as const))
    for (const name of names) {
      const answers = [
        await create(server, name),
        await ask(server, 'PUT', `${EVENTS}/${name}`, eventText(name)),
        await ask(server, 'DELETE', `${EVENTS}/${name}`),
      ]
      assert.deepEqual(
        answers.map(({ status }) => status),
        [409, 500, 500],
      )
      for (const { body } of answers) assert.match(body, /this server did not write/)
    }
    assert.equal((await ask(server, 'DELETE', EVENTS)).status, 200)
    assert.deepEqual(JSON.parse((await ask(server, 'GET', EVENTS)).body).items, [])
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + WRITE_MS))
    for (const key of keys) assert.deepEqual(await stranger.read(key), kubernetesValue)
    const line = await server.logged('A stored value is not an event')
    assert.deepEqual([line['etcdKey'], line['fault']], [keys[0], 'foreign'])
  })

  test('a replica without permission to read the keys beside the events reports it and is not ready', async () => {
    await using etcd = await startEtcd({ encrypted: true })
    const files = ['ca', 'cert', 'key'] as const
    const file = (name: string): string => join(folder, `etcd-${name}.pem`)
    for (const name of files) await writeFile(file(name), etcd.tls?.[name] ?? '', { mode: 0o600 })
    const asClient = files.map((name) => `--${name === 'ca' ? 'cacert' : name}=${file(name)}`)
    const commands = [
      'user add root:secret',
      'user grant-role root root',
      'role add events',
      'role grant-permission events readwrite /tidings/events/ /tidings/events0',
      'user add tidings --no-password',
      'user grant-role tidings events',
      'auth enable',
    ]
    for (const command of commands) await etcdctl(etcd, `${asClient.join(' ')} ${command}`)
    await using server = await start(
      etcd,
      `--etcd-cafile=${file('ca')}`,
      `--etcd-certfile=${file('cert')}`,
      `--etcd-keyfile=${file('key')}`,
    )
    await server.until(
      '/readyz/informer-sync',
      ({ status, body }) =>
        status === 500 &&
        /--etcd-prefix=\/tidings have not been checked yet: .*permission/.test(body),
      10_000,
    )
    assert.equal((await server.ask('/readyz')).status, 500)
    assert.equal((await create(server, 'early')).status, 503)
  })
})
