import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { Stranger } from '../../support/stranger.ts'
import type { Answer, Tidings } from '../../support/tidings.ts'

const NEW = '/apis/events.k8s.io/v1/namespaces/h/events'
const CORE = '/api/v1/namespaces/h/events'
const KEYS = '/tidings/events/local/h'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const TTL_MS = 3000

/** The metadata of `bad-<n>`, to which each case adds. */
const own = (index: number): string => `"name":"bad-${index}","namespace":"h"`

/** Values of fields that an encoder reads and cannot encode. */
const cases: readonly ((index: number) => string)[] = [
  () => '{"metadata":{"labels":5}}',
  () => '{"metadata":{}}',
  () => '{"metadata":{"name":"other","namespace":"h"}}',
  () => 'no JSON',
  (at) => `{"metadata":{${own(at)},"labels":5}}`,
  (at) => `{"metadata":{${own(at)},"labels":{"a":7}}}`,
  (at) => `{"metadata":{${own(at)},"annotations":["a"]}}`,
  (at) => `{"metadata":{${own(at)},"uid":[]}}`,
  (at) => `{"metadata":{${own(at)},"managedFields":7}}`,
  (at) => `{"metadata":{${own(at)},"finalizers":"f"}}`,
  (at) => `{"metadata":{${own(at)},"ownerReferences":{"a":1}}}`,
  (at) => `{"metadata":{${own(at)},"creationTimestamp":"nonsense"}}`,
  (at) => `{"metadata":{${own(at)},"deletionTimestamp":12}}`,
  (at) => `{"metadata":{${own(at)},"resourceVersion":"1"}}`,
  (at) => `{"metadata":{${own(at)}},"eventTime":"9999-99-99T00:00:00.000000Z"}`,
  (at) => `{"metadata":{${own(at)}},"series":[1]}`,
  (at) => `{"metadata":{${own(at)}},"series":{"count":1e400}}`,
  (at) => `{"metadata":{${own(at)}},"regarding":"pod"}`,
  (at) => `{"metadata":{${own(at)}},"related":{"kind":5}}`,
  (at) => `{"metadata":{${own(at)}},"note":{"a":1}}`,
  (at) => `{"metadata":{${own(at)}},"reason":7}`,
  (at) => `{"metadata":{${own(at)}},"deprecatedCount":"x"}`,
  (at) => `{"metadata":{${own(at)}},"deprecatedSource":[]}`,
  (at) => `{"metadata":{${own(at)}},"deprecatedFirstTimestamp":"-1"}`,
  (at) => `{"metadata":{${own(at)}},"kind":"Pod"}`,
  (at) => `{"metadata":{${own(at)}},"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
]

function ask(
  server: Tidings,
  method: string,
  path: string,
  { body, accept }: { body?: string; accept?: string | undefined } = {},
): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${ADMIN_TOKEN}`,
    'content-type': 'application/json',
    ...(accept === undefined ? {} : { accept }),
    // Node does not frame the body of a DELETE by itself.
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  }
  return server.ask(path, { method, headers, ...(body === undefined ? {} : { body }) })
}

const eventText = (name: string): string =>
  JSON.stringify({
    metadata: { name, labels: { a: 'b' } },
    eventTime: '2026-11-15T12:00:00.000000Z',
    reportingController: 'example.com/test',
    reportingInstance: 'test-1',
    action: 'Test',
    reason: 'R',
    regarding: { kind: 'Pod', namespace: 'h', name: 'web-0' },
    type: 'Normal',
  })

async function damagedCount(server: Tidings): Promise<number> {
  const { body } = await server.ask('/metrics')
  return Number(/^tidings_unreadable_values\{fault="damaged"\} (\d+)$/m.exec(body)?.[1])
}

const knowsOf = (server: Tidings, count: number): Promise<void> =>
  eventually(`${count} damaged`, async () => (await damagedCount(server)) === count, 10_000)

async function damage(stranger: Stranger): Promise<void> {
  const values = cases.map((bodyOf, index) => {
    const value = `{"w":${Date.now()},"i":${index}}\n${bodyOf(index)}`
    return [`${KEYS}/bad-${index}`, Buffer.from(value)] as const
  })
  await stranger.put(...values)
}

/** Lists in every format, of a namespace in which one event is valid. */
async function checkLists(server: Tidings): Promise<void> {
  const table = 'application/json;as=Table;g=meta.k8s.io;v=v1'
  const partial = ';as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
  const forms = [undefined, 'application/yaml', PROTOBUF, table, `${PROTOBUF}${partial}`]
  const selectors = [
    '',
    '?labelSelector=a%3Db',
    '?labelSelector=a+in+(b)',
    '?fieldSelector=reason%3DR',
  ]
  for (const path of [NEW, CORE]) {
    for (const accept of forms) {
      for (const selector of selectors) {
        const answer = await ask(server, 'GET', path + selector, { accept })
        assert.equal(answer.status, 200, `${path} ${accept} ${selector}: ${answer.body}`)
        assert.ok(answer.body.includes('good') && !answer.body.includes('bad-'), answer.body)
      }
    }
  }
}

const ONLY_DAMAGED = 'ignoreStoreReadErrorWithClusterBreakingPotential=true'

const statusesOf = (answers: readonly Answer[]): readonly number[] =>
  answers.map(({ status }) => status)

describe('damaged values of ours in etcd', { concurrency: 2 }, () => {
  test('lists continue; each damaged value is counted, explained and can be deleted', async () => {
    await using replicas = await Replicas.start(1)
    using stranger = new Stranger(replicas.etcd)
    const first = replicas.server(0)
    assert.equal((await ask(first, 'POST', NEW, { body: eventText('good') })).status, 201)
    await damage(stranger)
    // The first replica has followed the values, the second reads them at its start.
    const second = await replicas.startOne(1)
    for (const server of [first, second]) {
      await knowsOf(server, cases.length)
      await checkLists(server)
      const line = await server.logged('A stored value is not an event')
      assert.deepEqual([line['etcdKey'], line['fault']], [`${KEYS}/bad-0`, 'damaged'])
    }
    for (const index of cases.keys()) {
      const name = `bad-${index}`
      const path = `${NEW}/${name}`
      const before = await stranger.read(`${KEYS}/${name}`)
      const refused = [
        await ask(first, 'GET', path),
        await ask(second, 'GET', `${CORE}/${name}`, { accept: PROTOBUF }),
        await ask(first, 'PUT', path, { body: eventText(name) }),
        await ask(second, 'POST', NEW, { body: eventText(name) }),
        await ask(first, 'DELETE', path, { body: '{"preconditions":{"uid":"x"}}' }),
        await ask(first, 'DELETE', path, { body: '{"preconditions":{"uid":""}}' }),
      ]
      assert.deepEqual(statusesOf(refused), [500, 500, 500, 409, 409, 409], refused[4]?.body)
      for (const { body } of refused.slice(0, 4)) assert.match(body, /delete it to free the name/)
      assert.deepEqual(await stranger.read(`${KEYS}/${name}`), before)
    }
    assert.equal((await ask(first, 'DELETE', `${NEW}?labelSelector=none`)).status, 200)
    await knowsOf(first, cases.length)
    const good = await ask(first, 'DELETE', `${NEW}/good?${ONLY_DAMAGED}`)
    assert.equal(good.status, 409)
    assert.match(good.body, /can be decoded/)
    const missing = await ask(first, 'DELETE', `${NEW}/missing?${ONLY_DAMAGED}`)
    const dryRun = await ask(first, 'DELETE', `${NEW}/bad-0?${ONLY_DAMAGED}&dryRun=All`)
    assert.deepEqual(statusesOf([missing, dryRun]), [404, 200])
    await checkLists(first)
    await knowsOf(first, cases.length)
    for (const index of cases.keys()) {
      const path = `${index % 2 === 0 ? NEW : CORE}/bad-${index}`
      const deleted = await ask(first, 'DELETE', `${path}?${index < 2 ? ONLY_DAMAGED : ''}`)
      assert.equal(deleted.status, 200, deleted.body)
      assert.equal((await ask(second, 'GET', path)).status, 404)
    }
    assert.equal((await ask(first, 'POST', NEW, { body: eventText('bad-0') })).status, 201)
    await knowsOf(second, 0)
  })

  test('an event that is damaged while it is watched is sent as DELETED', async () => {
    await using replicas = await Replicas.start(1)
    using stranger = new Stranger(replicas.etcd)
    const server = replicas.server(0)
    const created = JSON.parse((await ask(server, 'POST', NEW, { body: eventText('seen') })).body)
    await stranger.put([`${KEYS}/seen`, Buffer.from('{"w":1,"i":0}\n{"metadata":{"labels":5}}')])
    await knowsOf(server, 1)
    const { resourceVersion } = created.metadata
    const query = `?watch=1&timeoutSeconds=1&resourceVersion=${resourceVersion}`
    const { body } = await ask(server, 'GET', NEW + query)
    const frames = body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      frames.map(({ type, object }) => [type, object.metadata.name]),
      [['DELETED', 'seen']],
    )
  })

  test('are swept when they expire', async () => {
    await using replicas = await Replicas.start(1, [`--event-ttl=${TTL_MS}ms`])
    using stranger = new Stranger(replicas.etcd)
    const server = replicas.server(0)
    await damage(stranger)
    await knowsOf(server, cases.length)
    const begunAt = performance.now()
    await knowsOf(server, 0)
    assert.ok(performance.now() - begunAt > TTL_MS / 2)
    assert.equal(await stranger.read(`${KEYS}/bad-0`), undefined)
  })
})
