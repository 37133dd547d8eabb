import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { StructType } from '../../../src/api/schema.ts'
import { eventHistogramType, eventSummaryType } from '../../../src/codec/summary-types.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import type { Answered, Call, EventApiUnderTest } from '../../support/event-api.ts'
import { withEventApi } from '../../support/event-api.ts'
import { makeEvent } from '../../support/wire-event.ts'

const base = '/apis/tidings.dev/v1alpha1'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const nowMs = Date.now()

function ago(ms: number): string {
  return `${new Date(nowMs - ms).toISOString().slice(0, 19)}Z`
}

interface Made {
  readonly cluster?: string
  readonly namespace: string
  readonly reason: string
  readonly type?: string
  readonly pod: string
  readonly count: number
  readonly ageMs: number
  /** Default: the same. */
  readonly firstAgeMs?: number
}

const events: readonly Made[] = [
  { namespace: 'shop', reason: 'BackOff', type: 'Warning', pod: 'web-0', count: 5, ageMs: 60_000 },
  { namespace: 'shop', reason: 'BackOff', type: 'Warning', pod: 'web-1', count: 4, ageMs: 30_000 },
  { namespace: 'shop', reason: 'Pulled', pod: 'web-0', count: 1, ageMs: 7_200_000 },
  { namespace: 'billing', reason: 'Pulled', pod: 'api-0', count: 2, ageMs: 1_800_000 },
  { cluster: 'prod', namespace: 'shop', reason: 'Killing', pod: 'web-0', count: 1, ageMs: 1000 },
]

describe('summaries and histograms', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: async (started) => {
      api = started
      for (const [index, made] of events.entries()) await write(`e${index}`, made)
    },
  })

  const write = async (name: string, made: Made): Promise<void> => {
    const { cluster = 'local', namespace } = made
    const { kind: _kind, apiVersion: _version, metadata, ...rest } = makeEvent(namespace, name)
    const body = {
      metadata,
      ...rest,
      reason: made.reason,
      type: made.type ?? 'Normal',
      note: `${made.reason} ${made.pod}`,
      reportingController: 'kubelet',
      regarding: { kind: 'Pod', namespace, name: made.pod },
      // Otherwise they could be in two buckets.
      deprecatedFirstTimestamp: ago(made.firstAgeMs ?? made.ageMs),
      deprecatedLastTimestamp: ago(made.ageMs),
      deprecatedCount: made.count,
    }
    await api.storage.create({ cluster, namespace, name }, Buffer.from(JSON.stringify(body)))
  }

  const ask = (
    resource: string,
    query: Call['query'] = {},
    options: { namespace?: string; cluster?: string; accept?: string } = {},
  ): Promise<Answered> => {
    const { namespace, cluster, accept } = options
    const inNamespace = namespace === undefined ? '' : `namespaces/${namespace}/`
    return api.call({
      at: '',
      path: `${base}/${inNamespace}${resource}`,
      query,
      ...(cluster !== undefined && { cluster }),
      ...(accept !== undefined && { headers: { accept } }),
    })
  }
  const groupsOf = async (
    ...options: Parameters<typeof ask> extends [string, ...infer R] ? R : never
  ) => {
    const { status, json, text } = await ask('eventsummaries', ...options)
    assert.equal(status, 200, text)
    return json.items.map(
      (item: {
        group: Record<string, string>
        occurrences: number
        events: number
        objects: number
      }) => [...Object.values(item.group), item.occurrences, item.events, item.objects].join(' '),
    )
  }

  test('a list of all namespaces has the groups of all, the largest first', async () => {
    assert.deepEqual(await groupsOf({ groupBy: 'reason' }), ['BackOff 9 2 2', 'Pulled 3 2 2'])
    const { json } = await ask('eventsummaries', { groupBy: 'reason,type' })
    assert.equal(json.kind, 'EventSummaryList')
    assert.equal(json.apiVersion, 'tidings.dev/v1alpha1')
    const [first] = json.items
    assert.deepEqual(first.group, { type: 'Warning', reason: 'BackOff' })
    assert.match(first.metadata.name, /^[0-9a-f]{10}$/)
    assert.equal(first.metadata.namespace, undefined)
    assert.equal(first.sampleNote, 'BackOff web-1')
    assert.deepEqual([first.warnings, json.items[1].warnings], [9, 0])
    assert.equal(first.firstTime, ago(60_000).replace('Z', '.000000Z'))
    assert.equal(first.lastTime, ago(30_000).replace('Z', '.000000Z'))
  })

  test('a list of a namespace has nothing of others, and its objects are in it', async () => {
    const options = { namespace: 'billing' }
    assert.deepEqual(await groupsOf({ groupBy: 'object' }, options), ['Pod/billing/api-0 2 1 1'])
    const { json } = await ask('eventsummaries', {}, options)
    assert.equal(json.items[0].metadata.namespace, 'billing')
    assert.equal(json.items[0].ratePerMinute, undefined)
    assert.deepEqual(await groupsOf({ groupBy: 'object' }, { namespace: 'none' }), [])
  })

  test('clusters are apart, and together in the list of all', async () => {
    assert.deepEqual(await groupsOf({ groupBy: 'reason' }, { cluster: 'prod' }), ['Killing 1 1 1'])
    assert.deepEqual(
      await groupsOf(
        { groupBy: 'object', fieldSelector: 'regarding.name=web-0' },
        { cluster: '*' },
      ),
      ['local Pod/shop/web-0 6 2 1', 'prod Pod/shop/web-0 1 1 1'],
    )
    assert.deepEqual(
      await groupsOf({ groupBy: 'namespace' }, { cluster: '*', namespace: 'shop' }),
      ['shop 11 4 3'],
    )
  })

  test('field labels of both APIs are filters', async () => {
    for (const label of ['regarding', 'involvedObject']) {
      const fieldSelector = `${label}.kind=Pod,${label}.name=web-0,groupBy=object`
      assert.deepEqual(await groupsOf({ fieldSelector }), ['Pod/shop/web-0 6 2 1'])
    }
  })

  test('field labels are filters and options', async () => {
    assert.deepEqual(await groupsOf({ fieldSelector: 'type=Warning,groupBy=reason+type' }), [
      'Warning BackOff 9 2 2',
    ])
    assert.deepEqual(await groupsOf({ fieldSelector: 'reason!=BackOff,groupBy=namespace' }), [
      'billing 2 1 1',
      'shop 1 1 1',
    ])
  })

  test('a limit shows the first groups, without a warning about the others', async () => {
    const { json, headers } = await ask('eventsummaries', { groupBy: 'object', limit: 1 })
    assert.equal(json.items.length, 1)
    assert.equal(headers['warning'], undefined)
    assert.equal(json.metadata.continue, undefined)
    // kubectl sends a limit of its own.
    const query = { fieldSelector: 'groupBy=object,limit=2', limit: 500 }
    assert.equal((await groupsOf(query)).length, 2)
  })

  test('time, mentions and text are filters', async () => {
    assert.deepEqual(await groupsOf({ fieldSelector: 'since=1h,groupBy=reason' }), [
      'BackOff 9 2 2',
      'Pulled 2 1 1',
    ])
    assert.deepEqual(await groupsOf({ fieldSelector: 'until=1h,groupBy=reason' }), ['Pulled 1 1 1'])
    assert.deepEqual(await groupsOf({ fieldSelector: 'mentions=pod/web-1,groupBy=reason' }), [
      'BackOff 4 1 1',
    ])
    assert.deepEqual(await groupsOf({ fieldSelector: 'text=pulled API,groupBy=reason' }), [
      'Pulled 2 1 1',
    ])
  })

  test('a table has the grouped fields and the counts', async () => {
    const { json } = await ask(
      'eventsummaries',
      { groupBy: 'reason,controller' },
      { accept: TABLE },
    )
    assert.deepEqual(
      json.columnDefinitions.map(({ name }: { name: string }) => name.toUpperCase()),
      'REASON CONTROLLER OCCURRENCES EVENTS OBJECTS FIRST LAST NOTE'.split(' '),
    )
    assert.match(json.rows[0].cells.join(' '), /^BackOff kubelet 9 2 2 \d+s \d+s BackOff web-1$/)
    const grouped = await ask('eventsummaries', { groupBy: 'namespace' }, { accept: TABLE })
    assert.equal(grouped.json.rows[0].object.metadata.namespace, 'shop')
  })

  test('YAML and protobuf are served', async () => {
    const yaml = await ask('eventsummaries', { groupBy: 'type' }, { accept: 'application/yaml' })
    assert.match(yaml.text, /kind: EventSummaryList/)
    const accept = 'application/vnd.kubernetes.protobuf'
    for (const resource of ['eventsummaries', 'eventhistograms']) {
      const { status, headers } = await ask(resource, {}, { accept })
      assert.equal(status, 200)
      assert.equal(headers['content-type'], accept)
    }
  })

  test('rates are shown for whole clusters, and order the groups', async () => {
    const flood = (reason: string, count: number) => {
      const stored = { key: { cluster: 'local', namespace: 'shop', name: 'x' } }
      const fields = { reason, reportingController: 'kubelet', sourceComponent: '' }
      for (let at = 0; at < count; at++)
        api.sources.changed({ ...stored, fields } as never, performance.now())
    }
    flood('Pulled', 600)
    flood('BackOff', 60)
    for (let at = 0; at < 100; at++) api.sources.wrote('ada', 'local')
    const { json } = await ask('eventsummaries', { groupBy: 'reason', order: 'rate' })
    const rates = json.items.map((item: { ratePerMinute: number }) => item.ratePerMinute)
    assert.deepEqual(
      json.items.map((item: { group: { reason: string } }) => item.group.reason),
      ['Pulled', 'BackOff'],
    )
    assert.ok(rates[0] > rates[1] && rates[1] > 0, rates.join())
    const users = await ask('eventsummaries', { groupBy: 'user' })
    assert.deepEqual(users.json.items[0].group, { user: 'ada' })
    assert.ok(users.json.items[0].ratePerMinute > 0)
    assert.equal(users.json.items[0].events, undefined)
    const inShop = await ask('eventsummaries', { groupBy: 'reason' }, { namespace: 'shop' })
    assert.ok(inShop.json.items.every((item: object) => !('ratePerMinute' in item)))
  })

  test('without options, incidents are shown: Warnings first, the newest first', async () => {
    const { json } = await ask('eventsummaries')
    assert.deepEqual(
      json.items.map(({ group }: { group: Record<string, string> }) => [
        group['namespace'],
        group['workload'],
        group['reason'],
      ]),
      [
        ['shop', 'StatefulSet/web', 'BackOff'],
        ['billing', 'StatefulSet/api', 'Pulled'],
        ['shop', 'StatefulSet/web', 'Pulled'],
      ],
    )
    assert.match(json.items[0].group.pattern, /^[0-9a-f]{8}$/)
  })

  test('compare shows what is new', async () => {
    const newGroups = async (query: Call['query']) => {
      const { status, json, text } = await ask('eventsummaries', query)
      assert.equal(status, 200, text)
      return json.items.map(({ group, before }: { group: object; before?: number }) => [
        ...Object.values(group),
        before ?? 0,
      ])
    }
    // Two hours ago web-0 pulled, half an hour ago api-0 did; now web crashes.
    assert.deepEqual(await newGroups({ groupBy: 'reason', compare: '10m' }), [['BackOff', 0]])
    assert.deepEqual(
      await newGroups({ groupBy: 'reason', compare: '3h', fieldSelector: 'since=20m' }),
      [['BackOff', 0]],
    )
    assert.deepEqual(await newGroups({ fieldSelector: 'groupBy=namespace,since=1h,compare=3h' }), [
      ['shop', 1],
      ['billing', 0],
    ])
    assert.deepEqual(await newGroups({ groupBy: 'reason', compare: '40m' }), [
      ['BackOff', 0],
      ['Pulled', 0],
    ])
    assert.deepEqual(
      await newGroups({ fieldSelector: 'groupBy=reason,since=40m,compare=4h,reason=Pulled' }),
      [['Pulled', 1]],
    )
    for (const compare of ['x', '0s', '-5m']) {
      assert.equal((await ask('eventsummaries', { compare })).status, 400, compare)
    }
  })

  test('every member of a summary and of a histogram is in its schema', async () => {
    const seen = new Set<string>()
    const check = (item: object, type: StructType) => {
      for (const name of Object.keys(item)) {
        assert.ok(type.field(name), `${type.name} has no ${name}`)
        seen.add(name)
      }
    }
    const cluster = 'ranged'
    const ranged = { cluster, namespace: 'data', reason: 'Failed', pod: 'db-0', count: 10 }
    await write('ranged', { ...ranged, ageMs: 1_000, firstAgeMs: 3_600_000 })
    for (const fieldSelector of ['since=2h,compare=1h', 'since=30m']) {
      const { json } = await ask('eventsummaries', { fieldSelector }, { cluster })
      assert.equal(json.items.length, 1)
      for (const item of json.items) check(item, eventSummaryType)
    }
    for (const name of ['before', 'estimated', 'workloadRule']) assert.ok(seen.has(name), name)
    const { json } = await ask('eventhistograms', {}, { cluster })
    const counts = eventHistogramType.field('counts')?.type
    assert.ok(typeof counts === 'object' && 'listOf' in counts && counts.listOf !== 'string')
    for (const bucket of json.items) {
      check(bucket, eventHistogramType)
      for (const count of bucket.counts) check(count, counts.listOf)
    }
  })

  test('a histogram has a bucket for each part of the window', async () => {
    const { json } = await ask('eventhistograms')
    assert.equal(json.kind, 'EventHistogramList')
    assert.equal(json.items.length, 60)
    const counts = json.items.flatMap((item: { counts: object[] }) => item.counts)
    assert.deepEqual(counts, [
      { name: 'Normal', occurrences: 2, events: 1, estimated: true },
      { name: 'Warning', occurrences: 5, events: 1, estimated: true },
      { name: 'Warning', occurrences: 4, events: 1, estimated: true },
    ])
    for (const [index, item] of json.items.entries()) {
      assert.equal(Date.parse(item.endTime) - Date.parse(item.startTime), 60_000)
      assert.equal(Date.parse(item.endTime) % 1_000, 0)
      if (index > 0) assert.equal(item.startTime, json.items[index - 1].endTime)
    }
    const halves = await ask('eventhistograms', { fieldSelector: 'since=2m,until=0s,buckets=2' })
    assert.deepEqual(
      halves.json.items.map((item: { startTime: string; endTime: string; counts: object[] }) => [
        Date.parse(item.endTime) - Date.parse(item.startTime),
        item.counts.length,
      ]),
      [
        [60_000, 1],
        [60_000, 1],
      ],
    )
    const table = await ask(
      'eventhistograms',
      { fieldSelector: 'buckets=1,by=reason' },
      { accept: TABLE, namespace: 'shop' },
    )
    assert.deepEqual(table.json.rows[0].cells.slice(2), [9, 'BackOff=~9'])
    assert.equal(table.json.rows[0].object.metadata.namespace, 'shop')
  })

  test('a histogram by any field has the counts of the most frequent values', async () => {
    const countsOf = async (fieldSelector: string) => {
      const { json, status, text } = await ask('eventhistograms', { fieldSelector })
      assert.equal(status, 200, text)
      return json.items[0].counts.map((one: object) => Object.values(one).join(' '))
    }
    for (const field of [
      'cluster',
      'namespace',
      'kind',
      'controller',
      'object',
      'type',
      'reason',
    ]) {
      const all: string[] = await countsOf(`buckets=1,by=${field}`)
      const [first = ''] = all.toSorted(
        (one, other) => Number(other.split(' ')[1]) - Number(one.split(' ')[1]),
      )
      const some = await countsOf(`buckets=1,by=${field},limit=1`)
      assert.ok(some.includes(first), field)
      assert.equal(some.length, Math.min(2, all.length), field)
      const isOther = (count: string) => count.startsWith('_other ')
      assert.equal(some.some(isOther), some.length === 2, field)
    }
    const { status, text } = await ask('eventhistograms', { fieldSelector: 'by=user' })
    assert.equal(status, 400)
    assert.match(text, /by: .*write cluster or/)
  })

  test('the version is that of the state, and a later one is awaited', async () => {
    const { json } = await ask('eventsummaries')
    const { resourceVersion } = json.metadata
    await write('new', { namespace: 'late', reason: 'New', pod: 'p', count: 1, ageMs: 0 })
    assert.deepEqual(await groupsOf({ groupBy: 'reason' }, { namespace: 'late' }), ['New 1 1 1'])
    assert.equal((await ask('eventsummaries', { resourceVersion })).status, 200)
    const future = await ask('eventsummaries', { resourceVersion: `${resourceVersion}0000` })
    assert.equal(future.status, 504, future.text)
    assert.match(future.text, /Too large resource version/)
  })

  for (const [query, message] of [
    [{ groupBy: 'colour' }, /unknown field/],
    [{ continue: 'x' }, /no further pages/],
    [{ resourceVersionMatch: 'Exact', resourceVersion: 5 }, /of the present/],
    [{ fieldSelector: 'colour=red' }, /field label not supported: colour/],
    [{ limit: 'x' }, /invalid/],
    [{ labelSelector: '!' }, /parse|understand/],
  ] as const) {
    test(`${JSON.stringify(query)} is a 400`, async () => {
      const { status, text } = await ask('eventsummaries', query)
      assert.equal(status, 400)
      assert.match(text, message)
    })
  }

  test('a single object, a watch and a write are 405', async () => {
    for (const call of [
      { path: `${base}/namespaces/shop/eventsummaries/x` },
      { path: `${base}/eventsummaries`, query: { watch: true } },
      { path: `${base}/namespaces/shop/eventhistograms`, method: 'POST', body: {} },
    ]) {
      const { status, json } = await api.call({ at: '', ...call })
      assert.equal(status, 405, call.path)
      assert.match(json.message, /^event\w+ are computed for each list: they can only be listed/)
    }
  })

  test('a client that has gone away ends its computation', async () => {
    const end = new AbortController()
    end.abort()
    await assert.rejects(
      api.storage.summaries.summarize(
        { cluster: undefined, namespace: undefined },
        { lane: aLane(), groupBy: ['reason'], groupsMax: 500, signal: end.signal },
      ),
      { kind: 'timeout' },
    )
  })
})
