/** Every event is accounted for: what was created is stored, or was deleted by someone. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { inParallel } from '../../support/load.ts'
import { MetricSums } from '../../support/metric-sums.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { makeEvent } from '../../support/wire-event.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const SERIES = { count: 2, lastObservedTime: '2026-01-02T03:05:05.000006Z' }
const CREATES = 300
const MIRRORED = 60
const CROWD = 60
const CROWD_BUDGET = 20
const WIDTH = 12
const PATIENCE_MS = 40_000

/** The servers of several replicas, and the sums of their counters. */
class Accounts {
  readonly #replicas: Replicas
  readonly #count: number

  constructor(replicas: Replicas, count: number) {
    this.#replicas = replicas
    this.#count = count
  }

  sums(): Promise<MetricSums> {
    const servers = Array.from({ length: this.#count }, (_, index) => this.#replicas.server(index))
    return MetricSums.of(servers)
  }

  /** All events that exist now: every replica shows the same number. */
  static storedIn(sums: MetricSums, replicas: number): number {
    return sums.sum('apiserver_resource_objects') / replicas
  }
}

function applied(sums: MetricSums, change: string, writer?: string): number {
  const labels = { change, outcome: 'applied', ...(writer === undefined ? {} : { writer }) }
  return sums.sum('tidings_event_changes_total', labels)
}

function unknown(sums: MetricSums): number {
  return sums.sum('tidings_event_changes_total', { outcome: 'unknown' })
}

/** What the responses say, for comparison with the counters. */
class Expected {
  created = 0
  updated = 0
  deleted = 0
  readonly refused: Record<string, number> = {}

  refuse(verb: string, reason: string): void {
    const key = `${verb} ${reason}`
    this.refused[key] = (this.refused[key] ?? 0) + 1
  }
}

/** One client's life with one event, with every kind of write among them. */
async function writeOne(client: EventClient, index: number, expected: Expected): Promise<void> {
  const namespace = `n-${index % 5}`
  const name = `e-${index}`
  const event = makeEvent(namespace, name)
  const put = (query: string, body: unknown) =>
    client.request({
      method: 'PUT',
      path: client.path(namespace, name) + query,
      headers: JSON_BODY,
      body: JSON.stringify(body),
    })
  if (index % 3 === 0) {
    assert.equal((await put('?dryRun=All', event)).status, 201)
    assert.equal((await put('', event)).status, 201)
  } else {
    await client.create(event)
  }
  expected.created++
  const again = await client.create(event).catch((error) => error)
  assert.equal(again.reason, 'AlreadyExists')
  expected.refuse('POST', 'AlreadyExists')
  if (index % 4 === 0) {
    const patch = { series: SERIES }
    const changed = await client.patch(namespace, name, { type: 'merge-patch', patch })
    expected.updated++
    // Nothing changes, so nothing is written.
    assert.equal((await put('', changed)).status, 200)
    const invalid = await put('', { ...changed, note: 'changed' })
    assert.equal(invalid.status, 422)
    expected.refuse('PUT', 'Invalid')
  }
  if (index % 5 === 1) {
    await client.delete(namespace, name)
    expected.deleted++
    const missing = await client.delete(namespace, name).catch((error) => error)
    assert.equal(missing.reason, 'NotFound')
    expected.refuse('DELETE', 'NotFound')
  }
}

async function deleteNamespace(client: EventClient, namespace: string): Promise<number> {
  const { items } = await client.list(namespace)
  const { status } = await client.request({ method: 'DELETE', path: client.path(namespace) })
  assert.equal(status, 200)
  return items.length
}

async function writeClusters(origin: Replicas): Promise<string> {
  const { port, folder } = origin.server(0)
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority': join(folder, 'tidings.crt'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: ADMIN_TOKEN } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  await writeFile(join(origin.folder, 'prod.kubeconfig'), JSON.stringify(config), { mode: 0o600 })
  const path = join(origin.folder, 'clusters.yaml')
  await writeFile(
    path,
    `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
- name: prod
  kubeconfig: prod.kubeconfig
  mirror: { deletes: explicit, originEventTTL: 1h }
`,
  )
  return path
}

async function writePolicy(folder: string): Promise<string> {
  const path = join(folder, 'retention.yaml')
  await writeFile(
    path,
    `apiVersion: tidings.dev/v1alpha1
kind: RetentionPolicy
rules:
- name: kept
  type: Warning
  lifetime: never
- name: brief
  namespace: n-3
  lifetime: 10s
budgets:
- name: crowd
  per: Namespace
  namespace: crowd
  events: ${CROWD_BUDGET}
`,
  )
  return path
}

describe('accounts', { timeout: 180_000 }, () => {
  test('three replicas: what was created is stored, has expired, was evicted or was deleted', async () => {
    await using origin = await Replicas.start(1)
    const clusters = await writeClusters(origin)
    const policy = await writePolicy(origin.folder)
    await using replicas = await Replicas.start(3, [
      `--retention-policy-file=${policy}`,
      `--clusters-file=${clusters}`,
      '--event-ttl=20s',
    ])
    const accounts = new Accounts(replicas, 3)
    using a = await replicas.client(0)
    using b = await replicas.client(1)
    using c = await replicas.client(2)
    using source = await origin.client(0)
    const clients = [a, b, c]
    const expected = new Expected()
    await inParallel(CREATES, WIDTH, async (index) => {
      const client = clients[index % 3]
      if (client !== undefined) await writeOne(client, index, expected)
      if (index < CROWD) {
        await client?.create(makeEvent('crowd', `c-${index}`, { type: 'Warning' }))
        expected.created++
      }
      if (index < MIRRORED) {
        const mirrored = await source.create(makeEvent('shop', `m-${index}`))
        if (index % 2 === 0) await source.update({ ...mirrored, series: SERIES })
      }
    })
    expected.deleted += await deleteNamespace(b, 'n-2')
    await eventually(
      'everything is mirrored',
      async () => applied(await accounts.sums(), 'created', 'mirror') === MIRRORED,
      PATIENCE_MS,
    )
    const sums = await accounts.sums()
    assert.deepEqual(
      ['created', 'updated', 'deleted'].map((change) => applied(sums, change, 'client')),
      [expected.created, expected.updated, expected.deleted],
    )
    for (const [key, count] of Object.entries(expected.refused)) {
      const [verb = '', reason = ''] = key.split(' ')
      const refused = sums.sum('tidings_event_writes_refused_total', { verb, reason })
      assert.equal(refused, count, key)
    }
    const refusedInAll = Object.values(expected.refused).reduce((sum, count) => sum + count, 0)
    assert.equal(sums.sum('tidings_event_writes_refused_total'), refusedInAll)

    const kept = CROWD_BUDGET
    await eventually(
      'everything that does not stay has expired',
      async () => Accounts.storedIn(await accounts.sums(), 3) === kept,
      PATIENCE_MS,
    )
    const last = await accounts.sums()
    assert.equal(applied(last, 'created'), CREATES + MIRRORED + CROWD)
    assert.equal(applied(last, 'created'), kept + applied(last, 'deleted'))
    const expired = last.sum('tidings_swept_events_total')
    const evicted = last.sum('tidings_evicted_events_total', { budget: 'crowd' })
    assert.equal(evicted, CROWD - CROWD_BUDGET)
    assert.equal(applied(last, 'deleted', 'retention'), expired + evicted)
    assert.equal(applied(last, 'deleted', 'client'), expected.deleted)
    const byRule = (rule: string) => last.sum('tidings_swept_events_total', { rule })
    assert.ok(byRule('brief') > 0 && byRule('default') > 0)
    assert.equal(byRule('brief') + byRule('default'), expired)
    assert.equal(unknown(last), 0)
  })

  test('writes that etcd did not respond to are counted apart', async () => {
    await using replicas = await Replicas.start(1)
    const accounts = new Accounts(replicas, 1)
    using client = await replicas.client(0)
    await client.create(makeEvent('shop', 'before'))
    replicas.etcd.member(0).pause()
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        client.request({
          method: 'POST',
          path: client.path('shop'),
          headers: JSON_BODY,
          body: JSON.stringify(makeEvent('shop', `late-${index}`)),
        }),
      ),
    )
    replicas.etcd.member(0).resume()
    const late = answers.filter(({ status }) => status === 504).length
    assert.ok(late > 0, answers.map(({ status }) => status).join())
    const sums = await accounts.sums()
    assert.equal(applied(sums, 'created'), 1)
    assert.equal(unknown(sums), late)
    const timedOut = { verb: 'POST', reason: 'Timeout' }
    assert.equal(sums.sum('tidings_event_writes_refused_total', timedOut), late)
    await eventually(
      'events are stored again',
      async () =>
        (await client.create(makeEvent('shop', 'after')).catch(() => undefined)) !== undefined,
      PATIENCE_MS,
    )
    const stored = (await client.list('shop')).items.length
    assert.ok(stored >= 2 && stored <= 2 + late, `${stored} stored, ${late} unknown`)
  })
})
