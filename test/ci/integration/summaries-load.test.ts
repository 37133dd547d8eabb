import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, mock, test } from 'node:test'
import { CachedStorage } from '../../../src/cache/cached-storage.ts'
import { listOnlyService } from '../../../src/endpoints/objects/read-only-service.ts'
import { eventSummaries } from '../../../src/endpoints/summaries/summaries.ts'
import { readTarget } from '../../../src/gate/target.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { TopSources } from '../../../src/registry/top-sources.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { fieldsIn } from '../../../src/storage/event-fields.ts'
import { beginning } from '../../../src/storage/resource-version.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import { type EventApiUnderTest, token, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'

const path = '/apis/tidings.dev/v1alpha1/eventsummaries'
const events = 12_000

describe('summaries of many events', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: async (started) => {
      api = started
      await api.fill('shop', events, (index) => ({
        reason: `R${index % 700}`,
        reportingController: `example.com/c-${index}`,
        regarding: { kind: 'Pod', namespace: 'shop', name: `pod-${index}` },
      }))
    },
  })

  test('at most 500 groups are shown, and the others counted', async () => {
    const { json, headers } = await api.call({ at: '', path, query: { groupBy: 'reason' } })
    assert.equal(json.items.length, 500)
    assert.match(headers['warning'] ?? '', /200 more groups are not shown/)
    // Pages of text are cut into pieces, which must fit together.
    const yaml = await api.call({
      at: '',
      path,
      query: { groupBy: 'reason' },
      headers: { accept: 'application/yaml' },
    })
    assert.equal(yaml.text.match(/^- events: /gm)?.length, 500)
  })

  test('any number of groups is counted, and the largest are shown', async () => {
    const { json, headers } = await api.call({ at: '', path, query: { groupBy: 'object' } })
    assert.equal(json.items.length, 500)
    assert.match(headers['warning'] ?? '', /more groups are not shown/)
    const { json: narrow } = await api.call({
      at: '',
      path,
      query: { fieldSelector: 'reason=R5,groupBy=object', limit: 1 },
    })
    assert.deepEqual(narrow.items[0].group, { object: 'Pod/shop/pod-10505' })
  })

  test('a histogram by controller has the counts of some, and of the others together', async () => {
    const histograms = path.replace('eventsummaries', 'eventhistograms')
    const query = { by: 'controller', fieldSelector: 'since=2000-01-01T00:00:00Z,buckets=1' }
    const { json } = await api.call({ at: '', path: histograms, query })
    const [{ counts }] = json.items
    assert.equal(counts.length, 51)
    assert.ok(counts.some(({ name }: { name: string }) => name === '_other'))
    assert.equal(
      counts.reduce((sum: number, { events }: { events: number }) => sum + events, 0),
      (await api.call({ at: '', path, query: { groupBy: 'type' } })).json.items[0].events,
    )
  })

  test('who writes most is shown also when there are more names than are shown', async () => {
    api.sources.changed(
      {
        key: { cluster: 'local', namespace: 'gone', name: 'x' },
        fields: fieldsIn({ reportingController: 'example.com/unstored' }),
      },
      performance.now(),
    )
    const query = { groupBy: 'controller', order: 'rate' }
    const { status, json, headers } = await api.call({ at: '', path, query })
    assert.equal(status, 200, json.message)
    const names: string[] = json.items.map(({ group }: { group: object }) =>
      Object.values(group).join(),
    )
    assert.ok(names.includes('example.com/unstored'), 'also without events')
    assert.match(headers['warning'] ?? '', /more groups are not shown/)
    const counted = await api.call({ at: '', path, query: { groupBy: 'controller' } })
    assert.equal(counted.json.items.length, 500)
  })

  test('a computation ends when its client disconnects', async () => {
    const { summaries } = api.storage
    const compute = summaries.summarize.bind(summaries)
    let read = 0
    let ended: unknown
    mock.method(summaries, 'summarize', (...[scope, options]: Parameters<typeof compute>) => {
      const slow = ({ body }: StoredEvent): boolean => {
        read++
        // Slow enough to be noticed while it runs.
        for (let at = 0; at < 10; at++) JSON.parse(body.toString())
        return true
      }
      const computing = compute(scope, { ...options, selector: { matches: slow } })
      computing.catch((error: unknown) => {
        ended = error
      })
      return computing
    })
    try {
      await using listener = await api.listenPlain()
      const headers = { authorization: `Bearer ${token}` }
      const sent = request({ port: listener.port, host: '127.0.0.1', path, headers })
      sent.on('error', () => {})
      sent.end()
      await eventually('the computation has begun', () => read > 0)
      sent.destroy()
      await eventually('the computation has ended', () => ended !== undefined)
      assert.ok(read < events, `${read} events were read`)
      assert.deepEqual(listener.bugs, [])
    } finally {
      mock.restoreAll()
    }
    // Its place is free again.
    for (let at = 0; at < 4; at++) assert.equal((await api.call({ at: '', path })).status, 200)
  })

  test('there are none until all events are loaded', async () => {
    const inner = new EtcdStorage({
      client: api.client,
      availability: api.availability,
      quotaAlarm: api.quotaAlarm,
      prefix: '/registry',
      onCorrupt: () => {},
    })
    const unloaded = new CachedStorage({ inner, log: silentLog })
    const service = listOnlyService(
      eventSummaries({
        storage: unloaded.summaries,
        version: () => beginning,
        rates: new TopSources(),
      }),
    )
    const asked = {
      method: 'GET',
      path,
      query: new URLSearchParams(),
      headers: {},
      peer: { address: '127.0.0.1', isLoopback: true, clientCertificate: () => undefined },
      signal: new AbortController().signal,
      lane: aLane(),
      body: async () => Buffer.alloc(0),
    }
    const handler = service.find(readTarget(asked, 'local'))
    assert.ok(handler)
    await assert.rejects(
      handler(asked, { user: { name: 'ada', groups: [] }, authorize: async () => {} }),
      { reason: 'ServiceUnavailable', details: { retryAfterSeconds: 1 } },
    )
    await inner.close()
  })
})
