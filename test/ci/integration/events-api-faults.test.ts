import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { startEtcd } from '../../support/etcd.ts'
import { type Answered, type Call, EventApiUnderTest } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { ReplyCutter } from '../../support/reply-cutter.ts'
import { makeEvent } from '../../support/wire-event.ts'

/** Well below the request timeout of a minute. */
const answerMsMax = 9_000
const callTimeoutMs = 2_000

const merge = { 'content-type': 'application/merge-patch+json' }

/** One request for each verb that needs etcd. */
const reads: Readonly<Record<string, Call>> = {
  get: { at: 'a/old' },
  list: { at: 'a' },
  'list of pages': { at: 'a', query: { limit: 1 } },
  'list of everything': { at: '' },
}
const writes: Readonly<Record<string, Call>> = {
  create: { method: 'POST', at: 'a', body: makeEvent('a', 'new') },
  update: { method: 'PUT', at: 'b/put', body: makeEvent('b', 'put', { labels: { by: 'put' } }) },
  patch: {
    method: 'PATCH',
    at: 'b/patched',
    headers: merge,
    body: { metadata: { labels: { by: 'patch' } } },
  },
  delete: { method: 'DELETE', at: 'b/deleted' },
  'collection delete': { method: 'DELETE', at: 'a', query: { labelSelector: 'x=y' } },
}

interface Outcome extends Answered {
  readonly verb: string
  readonly ms: number
}

/** Sends all requests at once and measures how long each takes. */
function askAll(
  api: EventApiUnderTest,
  calls: Readonly<Record<string, Call>>,
): Promise<readonly Outcome[]> {
  return Promise.all(
    Object.entries(calls).map(async ([verb, call]) => {
      const begun = performance.now()
      return { ...(await api.call(call)), verb, ms: performance.now() - begun }
    }),
  )
}

/** Creates the events that the requests use. */
async function fill(api: EventApiUnderTest): Promise<void> {
  const names = ['a/old', 'b/put', 'b/patched', 'b/deleted']
  await Promise.all(
    names.map(async (at) => {
      const [namespace = '', name = ''] = at.split('/')
      const body = makeEvent(namespace, name)
      assert.equal((await api.call({ method: 'POST', at: namespace, body })).status, 201)
    }),
  )
  // Now the cache has them as well.
  assert.equal((await api.call({ at: '' })).json.items.length, names.length)
}

/**
 * The response is a Status with code 503 or 504, and its Retry-After header equals that of the
 * body.
 */
function checkRefusal({ verb, status, headers, json, ms }: Outcome): void {
  assert.equal(json.kind, 'Status', verb)
  assert.equal(json.code, status, verb)
  assert.ok(status === 503 || status === 504, `${verb}: ${status}`)
  assert.ok(ms < answerMsMax, `${verb} took ${ms} ms`)
  assert.equal(headers['retry-after'], json.details.retryAfterSeconds?.toString(), verb)
}

async function checkReadFromMemory(api: EventApiUnderTest): Promise<void> {
  const query = { resourceVersion: 0 }
  const [one, all] = await Promise.all([
    api.call({ at: 'a/old', query }),
    api.call({ at: 'a', query }),
  ])
  assert.equal(one.json.metadata.name, 'old')
  assert.equal(all.json.items.length, 1)
}

describe('the API while etcd is unavailable', { concurrency: true }, () => {
  test('a silent etcd: reads may be retried, writes may have been applied, and the cache still serves', async () => {
    await using etcd = await startEtcd()
    await using api = await EventApiUnderTest.start(etcd.endpoints, { callTimeoutMs })
    await fill(api)
    etcd.member(0).pause()
    try {
      await checkReadFromMemory(api)
      const [read, written] = await Promise.all([askAll(api, reads), askAll(api, writes)])
      for (const outcome of read) {
        checkRefusal(outcome)
        assert.equal(outcome.headers['retry-after'], '1', outcome.verb)
      }
      for (const outcome of written) {
        checkRefusal(outcome)
        if (outcome.verb === 'collection delete') continue
        assert.equal(outcome.json.reason, 'Timeout', outcome.verb)
        assert.equal(outcome.headers['retry-after'], undefined, outcome.verb)
      }
      await checkReadFromMemory(api)
    } finally {
      etcd.member(0).resume()
    }
    await eventually('reads work again', async () => (await api.call({ at: 'a' })).status === 200)
  })

  test('an unreachable etcd: every request gets 503 with Retry-After, and no write is applied', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const endpoints = [`http://${proxy.address}`]
    await using api = await EventApiUnderTest.start(endpoints, { callTimeoutMs })
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await fill(api)
    const before = await api.call({ at: '' })
    proxy.set('refuse')
    // A request on a connection that is just being cut may still have reached etcd.
    await eventually('the connection ends', () =>
      api.client.endpoints().every(({ state }) => state === 'failing'),
    )
    const outcomes = await askAll(api, { ...reads, ...writes })
    for (const outcome of outcomes) {
      checkRefusal(outcome)
      assert.equal(outcome.headers['retry-after'], '1', outcome.verb)
    }
    await checkReadFromMemory(api)
    assert.deepEqual((await other.call({ at: '' })).json.items, before.json.items)
    proxy.set('pass')
    await eventually('writes work again', async () => {
      const { status } = await api.call({ method: 'DELETE', at: 'a/old' })
      return status === 200
    })
  })

  test('a write whose reply was cut gets 504 without Retry-After, whether it was applied or not', async () => {
    await using etcd = await startEtcd()
    await using cutter = await ReplyCutter.start(etcd.endpoints[0] ?? '')
    await using api = await EventApiUnderTest.start([cutter.endpoint], { callTimeoutMs })
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await fill(api)
    const { 'collection delete': _collection, ...singles } = writes
    const calls = { ...singles, generate: { method: 'POST', at: 'a', body: generated } }
    for (const [verb, call] of Object.entries(calls)) {
      // This read makes sure that there is a connection to cut.
      await eventually('reads succeed again, and the cache is in sync', async () => {
        const { status } = await api.call({ at: '' })
        return status === 200 && api.storage.hasSynced
      })
      const before = (await other.call({ at: '' })).json.metadata.resourceVersion
      cutter.isHolding = true
      const outcome = askAll(api, { [verb]: call })
      await eventually(`${verb} was done`, async () => {
        const { json } = await other.call({ at: '' })
        return json.metadata.resourceVersion !== before
      })
      cutter.cut()
      cutter.isHolding = false
      for (const refused of await outcome) {
        checkRefusal(refused)
        assert.equal(refused.json.reason, 'Timeout', verb)
        assert.equal(refused.headers['retry-after'], undefined, verb)
      }
    }
    const { json } = await other.call({ at: '' })
    const names: readonly string[] = json.items.map((item: Answered['json']) => item.metadata.name)
    // Each write was applied once: no second name was generated.
    assert.match(names.join(), /^made-\w{5},new,old,patched,put$/)
    const labels = json.items.map((item: Answered['json']) => item.metadata.labels?.by)
    assert.deepEqual(labels.slice(-2), ['patch', 'put'])
  })

  test('a silent etcd holds no request longer than the request timeout', async () => {
    await using etcd = await startEtcd()
    await using api = await EventApiUnderTest.start(etcd.endpoints)
    await using listener = await api.listenPlain({ limits: { requestTimeoutMs: 1_000 } })
    etcd.member(0).pause()
    try {
      const url = `http://127.0.0.1:${listener.port}/apis/events.k8s.io/v1/namespaces/a/events`
      const headers = { authorization: 'Bearer x', 'content-type': 'application/json' }
      const body = JSON.stringify(makeEvent('a', 'new'))
      const begun = performance.now()
      const [read, write] = await Promise.all([
        fetch(url, { headers }),
        fetch(url, { method: 'POST', headers, body }),
      ])
      assert.ok(performance.now() - begun < 2_500)
      assert.deepEqual([read.status, write.status], [504, 504])
      assert.equal(read.headers.get('retry-after'), '1')
      assert.equal(write.headers.get('retry-after'), null)
      assert.deepEqual(
        [((await read.json()) as Answered['json']).reason, listener.bugs],
        ['Timeout', []],
      )
    } finally {
      etcd.member(0).resume()
    }
  })

  test('a watch survives an outage without a gap', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    await using api = await EventApiUnderTest.start([`http://${proxy.address}`])
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await using watched = await api.watchFromNow('a')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'before') })
    await eventually('the first change is received', () => watched.received.length === 1)
    proxy.set('refuse')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'during') })
    await pause(100)
    proxy.set('pass')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'after') })
    await eventually('all are received', () => watched.received.length >= 3)
    assert.deepEqual(watched.received, ['ADDED before', 'ADDED during', 'ADDED after'])
  })
})

const { name: _name, ...unnamed } = makeEvent('a', '').metadata
const generated = { ...makeEvent('a', ''), metadata: { ...unnamed, generateName: 'made-' } }
