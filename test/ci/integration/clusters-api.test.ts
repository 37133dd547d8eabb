import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type ClusterMirrorStatus,
  clusterStatuses,
} from '../../../src/endpoints/objects/cluster-statuses.ts'
import { clusters } from '../../../src/endpoints/objects/clusters.ts'
import { readOnlyService } from '../../../src/endpoints/objects/read-only-service.ts'
import { readTarget } from '../../../src/gate/target.ts'
import type { Response } from '../../../src/http/exchange.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { Watched } from '../../support/watched.ts'
import { type EventFields, makeEvent } from '../../support/wire-event.ts'

const path = '/apis/tidings.dev/v1alpha1/clusters'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

describe('clusters', () => {
  let api: EventApiUnderTest
  let mirror: ClusterMirrorStatus | undefined
  withEventApi({
    begin: async (started) => {
      api = started
      for (const cluster of ['a', 'a-b', 'local']) await write(cluster, 'x')
      await write('a', 'y')
      // A consistent read: memory has everything after it.
      await api.call({ cluster: 'a', at: 'n' })
    },
  })

  const write = async (cluster: string, name: string, fields: EventFields = {}): Promise<void> => {
    const { kind: _kind, apiVersion: _version, metadata, ...rest } = makeEvent('n', name, fields)
    const body = Buffer.from(JSON.stringify({ metadata, ...rest }))
    await api.storage.create({ cluster, namespace: 'n', name }, body)
  }

  /** A request of a user who may list the events of these clusters. */
  const ask = async (
    visible: readonly string[],
    request: { readonly path?: string; readonly query?: string; readonly accept?: string } = {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Response> => {
    const service = readOnlyService(
      clusters({
        statuses: clusterStatuses({
          named: () => ['local', 'configured'],
          events: () => api.storage.eventsByCluster(),
          oldestIn: (cluster, lane) =>
            api.storage.oldest.in({ cluster, namespace: undefined }, lane),
          newestIn: (cluster, lane) =>
            api.storage.newest.in({ cluster, namespace: undefined }, lane),
          mirrorStatus: (cluster) => (cluster === 'configured' ? mirror : undefined),
        }),
        eventsGroup: 'events.k8s.io',
        decide: async (_user, { cluster, isResource, verb }) => {
          assert.ok(isResource && verb === 'list')
          return { verdict: visible.includes(cluster) ? 'allow' : 'no-opinion' }
        },
        version: () => api.storage.stats().version,
        watchMsMax: 60_000,
        pollMs: 20,
      }),
    )
    const sent = {
      method: 'GET',
      path: request.path ?? path,
      query: new URLSearchParams(request.query),
      headers: request.accept === undefined ? {} : { accept: request.accept },
      peer: { address: '127.0.0.1', isLoopback: true, clientCertificate: () => undefined },
      signal,
      lane: aLane(),
      body: async () => Buffer.alloc(0),
    }
    const handler = service.find(readTarget(sent, 'local'))
    assert.ok(handler)
    return handler(sent, { user: { name: 'tester', groups: [] }, authorize: async () => {} })
  }
  const read = async (...options: Parameters<typeof ask>) =>
    JSON.parse(String((await ask(...options)).body))
  const rowsOf = (list: { items: { metadata: { name: string }; status: { events: number } }[] }) =>
    list.items.map(({ metadata, status }) => `${metadata.name} ${status.events}`)

  test('clusters have events, are named by a file, or are the default; each has its count', async () => {
    mirror = { state: 'Stalled', lagMs: 90_400, message: 'no route to host' }
    const list = await read(['*'])
    assert.equal(list.kind, 'ClusterList')
    assert.deepEqual(rowsOf(list), ['a 2', 'a-b 1', 'configured 0', 'local 1'])
    assert.deepEqual(list.items[2].status, {
      events: 0,
      mirror: { state: 'Stalled', lagSeconds: 90, message: 'no route to host' },
    })
  })

  test('the times of a cluster are when its oldest and its newest event were last seen', async () => {
    const seen = (hour: number, year = 2026): EventFields => ({
      eventTime: `${year}-01-02T0${hour}:00:00.000000Z`,
    })
    await write('timed', 'newest', seen(6))
    await write('timed', 'oldest', seen(4))
    await write('timed', 'of-a-wrong-clock', seen(5, 2300))
    await api.call({ cluster: 'timed', at: 'n' })
    const { status } = await read(['timed'], { path: `${path}/timed` })
    assert.deepEqual(status, {
      events: 3,
      oldestEventTime: '2026-01-02T04:00:00Z',
      lastEventTime: '2026-01-02T06:00:00Z',
    })
    const windows = await api.call({
      cluster: 'timed',
      at: '',
      path: '/apis/tidings.dev/v1alpha1/retentionwindows',
    })
    const [window] = windows.json.items
    assert.equal(window.metadata.name, 'timed')
    assert.equal(Date.parse(window.oldestTime), Date.parse(status.oldestEventTime))
  })

  test('a table has the columns that kubectl prints', async () => {
    mirror = { state: 'Following', lagMs: 0, message: '' }
    const table = await read(['*'], { accept: TABLE })
    assert.deepEqual(
      table.columnDefinitions.map(({ name }: { name: string }) => name.toUpperCase()),
      ['NAME', 'EVENTS', 'OLDEST', 'LAST EVENT', 'MIRROR', 'LAG', 'MESSAGE'],
    )
    assert.deepEqual(table.rows[2].cells, ['configured', 0, '', '', 'Following', '0s', ''])
    assert.match(table.rows[0].cells.slice(1, 4).join(' '), /^2 \d+d \d+d$/)
  })

  test('a user sees only the clusters whose events the user may list', async () => {
    assert.deepEqual(rowsOf(await read(['a'])), ['a 2'])
    assert.deepEqual(rowsOf(await read([])), [])
    assert.equal((await read(['a'], { path: `${path}/a` })).metadata.name, 'a')
    for (const hidden of ['a-b', 'configured', 'does-not-exist']) {
      await assert.rejects(ask(['a'], { path: `${path}/${hidden}` }), {
        reason: 'NotFound',
        message: `clusters.tidings.dev "${hidden}" not found`,
      })
    }
    const selected = await read(['a', 'a-b'], { query: 'fieldSelector=metadata.name=a-b' })
    assert.deepEqual(rowsOf(selected), ['a-b 1'])
  })

  test('a watch sends what has changed since the list, and nothing else', async () => {
    mirror = { state: 'Syncing', lagMs: undefined, message: '' }
    const end = new AbortController()
    const visible = ['a', 'configured', 'new']
    await using initial = new Watched(await ask(visible, { query: 'watch=1' }, end.signal), end)
    await eventually('initial objects', () => initial.frames.length >= 2)
    assert.deepEqual(initial.received, ['ADDED a', 'ADDED configured'])
    mirror = { state: 'Following', lagMs: 0, message: '' }
    await eventually('the mirror', () => initial.frames.length >= 3)
    await write('new', 'x')
    await eventually('the cluster', () => initial.frames.length >= 4)
    visible.pop()
    await eventually('the revoked permission', () => initial.frames.length >= 5)
    assert.deepEqual(initial.received.slice(2), ['MODIFIED configured', 'ADDED new', 'DELETED new'])
  })
})
