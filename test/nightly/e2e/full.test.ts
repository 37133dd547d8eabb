import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { type EtcdCluster, etcdctlBinary } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { fillUp, startSmallEtcd } from '../../support/full-etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import { makeEvent } from '../../support/wire-event.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const OBJECTS = 'apiserver_resource_objects{group="events.k8s.io",resource="events"}'
const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
const run = promisify(execFile)

async function metric(server: Tidings, series: string): Promise<number | undefined> {
  const { body } = await server.ask('/metrics')
  const line = body.split('\n').find((text) => text.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

/** The commands that the page tells operators to run. */
function remedy(): string {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/runbook/README.md'), 'utf8')
  const [, code] = /^## While etcd is full$[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(page) ?? []
  return code ?? assert.fail('the page has no commands')
}

async function typeRemedy(etcd: EtcdCluster): Promise<string> {
  const path = [dirname(etcdctlBinary), '/usr/bin', '/bin'].join(delimiter)
  const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', remedy()], {
    env: { PATH: path, ETCDCTL_ENDPOINTS: etcd.endpoints.join(',') },
  })
  return stdout
}

async function start(etcd: EtcdCluster, tokens: string): Promise<Tidings> {
  const server = await Tidings.start([
    `--etcd-servers=${etcd.endpoints[0]}`,
    '--event-ttl=12s',
    `--token-auth-file=${tokens}`,
  ])
  await server.until('/readyz', ({ status }) => status === 200, 10_000)
  return server
}

const create = (server: Tidings, name: string) =>
  server.ask(EVENTS, { method: 'POST', headers, body: JSON.stringify(makeEvent('shop', name)) })

describe('an etcd that is full', () => {
  test('a replica that starts with a full etcd sweeps and stays ready, and the remedy of the docs works', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-full-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const tokens = join(folder, 'tokens.csv')
    await writeFile(tokens, 'secret,ada,1,"system:masters"\n')
    await using etcd = await startSmallEtcd()
    const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
    try {
      {
        await using first = await start(etcd, tokens)
        await first.logged('This replica sweeps and compacts')
        for (let number = 0; number < 20; number++) {
          assert.equal((await create(first, `e-${number}`)).status, 201)
        }
        await fillUp(client)
        // Killed here, with its lease.
      }
      await using server = await start(etcd, tokens)
      await eventually(
        'it knows',
        async () => (await metric(server, 'tidings_etcd_no_space')) === 1,
      )
      const { remedy } = await server.logged(
        'etcd is full: it accepts only reads and deletes until an operator frees space',
      )
      assert.match(String(remedy), /etcdctl alarm disarm/)
      const refused = await create(server, 'late')
      assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1'])
      await server.logged(
        'etcd is full, no leader can be elected: this replica sweeps and compacts without one',
        15_000,
      )
      assert.equal(await metric(server, 'tidings_sweeper_role'), 1)
      assert.notEqual(await metric(server, 'tidings_sweep_lag_seconds'), undefined)
      await eventually('all is swept', async () => (await metric(server, OBJECTS)) === 0, 40_000)
      assert.equal(await metric(server, 'tidings_swept_events_total{rule="default"}'), 20)
      for (const path of ['/readyz', '/livez', '/healthz']) {
        assert.equal((await server.ask(path)).status, 200, path)
      }

      const all = { key: Buffer.from('/junk/'), rangeEnd: Buffer.from('/junk0') }
      await client.txn({ success: [{ type: 'delete', ...all }] })
      assert.match(
        await typeRemedy(etcd),
        /^compacted revision \d+\n.*\nmemberID:\d+ alarm:NOSPACE \n$/,
      )
      assert.deepEqual(await client.alarms(), [])
      await server.logged('etcd accepts writes again')
      assert.equal((await create(server, 'after')).status, 201)
      await server.logged('This replica sweeps and compacts')
      assert.equal(await metric(server, 'tidings_etcd_no_space'), 0)
      assert.equal(await metric(server, 'tidings_sweeper_role'), 1)
    } finally {
      client.close()
    }
  })
})
