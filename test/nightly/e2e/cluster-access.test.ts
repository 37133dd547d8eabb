/**
 * No content of a cluster reaches a user without permission there: requests of many users to many
 * clusters, against the built program over TLS, with the outcome that a small model expects.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Clients, run } from '../../support/cluster-access/check.ts'
import {
  collection,
  lists,
  type MatrixRequest,
  objects,
  PAGED_LISTS,
  type Seed,
  watches,
} from '../../support/cluster-access/matrix.ts'
import { others } from '../../support/cluster-access/matrix-others.ts'
import { summaries } from '../../support/cluster-access/matrix-summaries.ts'
import {
  ALPHA,
  EVENTS,
  HOME,
  MASTER,
  mayDo,
  PLACES,
  TOKENS,
  USERS,
  WILDCARD,
  wireEvent,
  writePolicy,
} from '../../support/cluster-access/model.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { faultEnv, type PlantedFault } from '../../support/planted-fault.ts'
import { Tidings } from '../../support/tidings.ts'

const ROOT = '/apis/events.k8s.io/v1'
const JSON_BODY = { 'content-type': 'application/json' }
/** Enough for the CPU; watches wait for most of their second. */
const AT_ONCE = 32
const WATCHES_AT_ONCE = 200

// About 25 s of CPU time; longer than the usual timeout on a busy machine.
describe('access to clusters', { timeout: 240_000 }, () => {
  let etcd: EtcdCluster
  let folder: string
  let server: Tidings
  let clients: Clients
  let seed: Seed
  const uids = new Map<string, string>()

  async function start(env: Readonly<Record<string, string>> = {}): Promise<Tidings> {
    const flags = [
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      `--rbac-policy-path=${join(folder, 'roles')}`,
      '--max-requests-inflight=0',
      '--max-mutating-requests-inflight=0',
    ]
    const started = await Tidings.start(flags, env)
    await started.until('/readyz', ({ status }) => status === 200, 30_000)
    return started
  }

  /** Asks as the master, who may see everything. */
  async function ask(path: string, body?: object): Promise<Json> {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const call = { path, headers: JSON_BODY, ...sent }
    const answer = await clients.of(MASTER).request(call)
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body.toString())
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-clusters-'))
    await writeFile(join(folder, 'tokens.csv'), TOKENS)
    await writePolicy(join(folder, 'roles'))
    etcd = await startEtcd()
    server = await start()
    clients = await Clients.open(server)
    const { resourceVersion: version } = (await ask(collection('', ROOT, undefined))).metadata
    for (const event of EVENTS) {
      const path = collection(`/clusters/${event.cluster}`, ROOT, event.namespace)
      uids.set(event.marker, (await ask(path, wireEvent(event))).metadata.uid)
    }
    const tokens = new Map<string, string>()
    for (const path of PAGED_LISTS) {
      const { metadata } = await ask(`${path}?limit=1`)
      assert.ok(metadata.continue, path)
      tokens.set(path, metadata.continue)
    }
    seed = { version, tokens }
  })
  after(async () => {
    clients?.[Symbol.dispose]()
    await server?.[Symbol.asyncDispose]()
    await etcd?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  type Part = 'list' | 'watch' | 'objects' | 'others' | 'summaries'
  const parts: readonly [Part, () => Iterable<MatrixRequest>, number][] = [
    ['list', () => lists(seed), AT_ONCE],
    ['watch', () => watches(seed), WATCHES_AT_ONCE],
    ['objects', () => objects(), AT_ONCE],
    ['others', () => others(), AT_ONCE],
    ['summaries', () => summaries(), AT_ONCE],
  ]
  for (const [name, requests, atOnce] of parts) {
    test(`every user gets from each cluster what the model allows: ${name}`, async (context) => {
      const outcome = await run(clients, requests(), { uids, atOnce, mistakesMax: 10 })
      const { mistakes, count, allowed, denied } = outcome
      assert.deepEqual(mistakes, [])
      context.diagnostic(`${count} requests, ${allowed} to be allowed, ${denied} to be denied`)
      assert.ok(count > 1000)
      if (allowed + denied > 0) assert.ok(allowed > count / 10 && denied > count / 10)
    })
  }

  test('an event is created in exactly the clusters in which the user may create it', async () => {
    const expected: string[] = []
    for (const user of USERS.keys()) {
      for (const { prefix, cluster } of PLACES) {
        if (prefix === '') continue
        const name = `by-${user}`
        const event = { cluster, namespace: 'ops', name, marker: 'unmarked' }
        const body = JSON.stringify(wireEvent(event))
        const path = collection(prefix, ROOT, 'ops')
        const call = { method: 'POST', path, headers: JSON_BODY, body }
        await clients.of(user).request(call)
        const isWritten = mayDo({ user }, { cluster, verb: 'create', namespace: 'ops' })
        if (isWritten && cluster !== WILDCARD) expected.push(`${cluster}/${name}`)
      }
    }
    const { items } = await ask(collection('/clusters/*', ROOT, 'ops'))
    const found = items
      .filter(({ note }: Json) => note === 'unmarked')
      .map(
        ({ metadata }: Json) => `${metadata.annotations['tidings.dev/cluster']}/${metadata.name}`,
      )
    assert.deepEqual(found.sort(), expected.sort())
  })

  test('metrics name no cluster that only clients have named', async () => {
    const { status, body } = await clients.of(MASTER).request({ path: '/metrics' })
    assert.equal(status, 200)
    const labels = [...body.toString().matchAll(/tidings_cluster_\w+\{cluster="([^"]*)"/g)]
    assert.deepEqual(new Set(labels.map(([, label]) => label)), new Set([HOME, '*', '_other']))
  })

  const faults: Readonly<Record<string, PlantedFault & { readonly part: Part }>> = {
    'permissions of the default cluster count in all clusters': {
      part: 'list',
      file: 'gate/authorization/rbac.js',
      find: 'this.#byCluster.get(cluster) ?? this.#common',
      replace: `this.#byCluster.get('${HOME}')`,
    },
    'permissions of a cluster count for the wildcard': {
      part: 'list',
      file: 'gate/authorization/rbac.js',
      find: 'this.#byCluster.get(cluster) ??',
      replace: `this.#byCluster.get(cluster === '*' ? '${ALPHA}' : cluster) ??`,
    },
    'impersonation is decided in another cluster': {
      part: 'list',
      file: 'gate/impersonation.js',
      find: "verb: 'impersonate',",
      replace: `verb: 'impersonate', cluster: '${ALPHA}',`,
    },
    'a list reads all clusters': {
      part: 'list',
      file: 'endpoints/request/list-plan.js',
      find: 'if (cluster === ALL_CLUSTERS)',
      replace: 'if (true)',
    },
    'a watch shows the changes of all clusters': {
      part: 'watch',
      file: 'storage/event-scope.js',
      find: 'if (cluster !== key.cluster)',
      replace: 'if (false)',
    },
    'discovery shows the kinds of all clusters': {
      part: 'others',
      file: 'cache/memory/regarded-kinds.js',
      find: 'kind.cluster === cluster)',
      replace: 'true)',
    },
  }
  for (const [name, fault] of Object.entries(faults)) {
    test(`the matrix finds a planted fault: ${name}`, async (context) => {
      await using faulty = await start(faultEnv(fault))
      using connected = await Clients.open(faulty)
      const [, requests, atOnce] = parts.find(([part]) => part === fault.part) ?? []
      assert.ok(requests && atOnce)
      const { mistakes } = await run(connected, requests(), { uids, atOnce, mistakesMax: 1 })
      assert.ok(mistakes[0])
      context.diagnostic(mistakes[0])
    })
  }
})

// biome-ignore lint/suspicious/noExplicitAny: parsed JSON of any response.
type Json = any
