import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../src/lib/abort.ts'
import { startEtcd } from '../support/etcd.ts'
import { type Answered, type Call, EventApiUnderTest } from '../support/event-api.ts'
import { makeEvent } from '../support/event-client.ts'
import { eventually } from '../support/eventually.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { ReplyCutter } from '../support/reply-cutter.ts'

/** Well within the minute that a request may take. */
const answerMsMax = 9_000
const callTimeoutMs = 2_000

const merge = { 'content-type': 'application/merge-patch+json' }

/** One of each verb that asks etcd. */
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

/** Every call at once, and how long each took. */
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

/** What the calls are about. */
async function fill(api: EventApiUnderTest): Promise<void> {
  const names = ['a/old', 'b/put', 'b/patched', 'b/deleted']
  await Promise.all(
    names.map(async (at) => {
      const [namespace = '', name = ''] = at.split('/')
      const body = makeEvent(namespace, name)
      assert.equal((await api.call({ method: 'POST', at: namespace, body })).status, 201)
    }),
  )
  // Now memory has them as well.
  assert.equal((await api.call({ at: '' })).json.items.length, names.length)
}

/** A Status of one of these codes; what may be tried again says when. */
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

describe('the API while etcd is away', { concurrency: true }, () => {
  test('silent: reads may be tried again, writes may have happened, memory still answers', async () => {
    await using etcd = await startEtcd()
    await using api = await EventApiUnderTest.start(etcd.endpoints, { callTimeoutMs })
    await fill(api)
    etcd.member(0).pause()
    try {
      await checkReadFromMemory(api)
      const [told, written] = await Promise.all([askAll(api, reads), askAll(api, writes)])
      for (const outcome of told) {
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

  test('unreachable: everything is refused with a time to come back, and nothing has happened', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    const endpoints = [`http://${proxy.address}`]
    await using api = await EventApiUnderTest.start(endpoints, { callTimeoutMs })
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await fill(api)
    const before = await api.call({ at: '' })
    proxy.set('refuse')
    // A request on a connection that is just being cut may have arrived.
    await pause(50)
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

  test('a reply that was cut off: 504 without Retry-After, whether it happened or not', async () => {
    await using etcd = await startEtcd()
    await using cutter = await ReplyCutter.start(etcd.endpoints[0] ?? '')
    await using api = await EventApiUnderTest.start([cutter.endpoint], { callTimeoutMs })
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await fill(api)
    const { 'collection delete': _collection, ...singles } = writes
    const calls = { ...singles, generate: { method: 'POST', at: 'a', body: generated } }
    for (const [verb, call] of Object.entries(calls)) {
      // Also makes sure that there is a connection to be cut.
      await eventually('it reads again, and from memory', async () => {
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
    // Each was done, once: no second name was made up.
    assert.match(names.join(), /^made-\w{5},new,old,patched,put$/)
    const labels = json.items.map((item: Answered['json']) => item.metadata.labels?.by)
    assert.deepEqual(labels.slice(-2), ['patch', 'put'])
  })

  test('a silent etcd holds no request longer than requests may take', async () => {
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

  test('a watch outlives an outage without a gap', async () => {
    await using etcd = await startEtcd()
    await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
    await using api = await EventApiUnderTest.start([`http://${proxy.address}`])
    await using other = await EventApiUnderTest.start(etcd.endpoints)
    await using watched = await api.watchFromNow('a')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'before') })
    await eventually('the first is told', () => watched.told.length === 1)
    proxy.set('refuse')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'during') })
    await pause(100)
    proxy.set('pass')
    await other.call({ method: 'POST', at: 'a', body: makeEvent('a', 'after') })
    await eventually('all are told', () => watched.told.length >= 3)
    assert.deepEqual(watched.told, ['ADDED before', 'ADDED during', 'ADDED after'])
  })
})

const { name: _name, ...unnamed } = makeEvent('a', '').metadata
const generated = { ...makeEvent('a', ''), metadata: { ...unnamed, generateName: 'made-' } }
