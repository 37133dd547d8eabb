import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { RetentionPolicy } from '../../../src/retention/policy.ts'
import { parseVersion } from '../../../src/storage/resource-version.ts'
import { type Answered, type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { eventBody } from '../../support/stored-events.ts'

const base = '/apis/tidings.dev/v1alpha1'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const day = 86_400_000

describe('retention windows', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: async (started) => {
      api = started
      await write('local', 'shop', 'a', '2026-01-02T00:00:00.000000Z')
      await write('local', 'shop', 'b', '2026-01-01T00:00:00.000000Z')
      await write('local', 'cart', 'a', '2026-01-03T00:00:00.000000Z')
      await write('prod', 'shop', 'a', '2025-12-31T00:00:00.000000Z')
      await eventually('memory has them', () => api.storage.count === 4)
      api.kept.policy = new RetentionPolicy({
        rules: [
          {
            name: 'shops',
            selector: { namespace: ['shop'], reason: ['Pulling'] },
            lifetime: 1_000,
          },
          { name: 'prod', selector: { cluster: ['prod'] }, lifetime: 'never' },
          { name: 'warnings', selector: { type: ['Warning'] }, lifetime: 7 * day },
        ],
        lifetime: 3_600_000,
        budgets: [
          {
            name: 'shops',
            per: 'Namespace',
            cluster: undefined,
            namespace: ['shop'],
            events: 100,
            bytes: 200 * 1024 * 1024,
          },
        ],
      })
      api.kept.totals.add('namespaces', 'local/shop', 7)
      api.kept.totals.add('clusters', 'local', 9)
    },
  })

  const write = async (cluster: string, namespace: string, name: string, eventTime: string) => {
    const key = { cluster, namespace, name }
    await api.storage.create(key, eventBody(key, 'text', { eventTime }))
  }

  const ask = (path: string, options: { cluster?: string; isTable?: boolean } = {}) =>
    api.call({
      at: '',
      path: `${base}${path}`,
      ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
      headers: options.isTable === true ? { accept: TABLE } : {},
    })

  const rowsOf = ({ json }: Answered): unknown[] =>
    json.rows.map(({ cells }: { cells: unknown[] }) => cells)

  test('a namespace shows what is kept of it, and for how long', async () => {
    const { status, json } = await ask('/namespaces/shop/retentionwindows')
    assert.equal(status, 200)
    assert.equal(json.kind, 'RetentionWindowList')
    assert.equal(json.items.length, 1)
    const [window] = json.items
    const { bytes, metadata, ...rest } = window
    assert.deepEqual([metadata.name, metadata.namespace], ['shop', 'shop'])
    assert.ok(bytes > 800 && bytes < 2_000)
    assert.deepEqual(rest, {
      cluster: 'local',
      events: 2,
      oldestTime: '2026-01-01T00:00:00.000000Z',
      lifetimes: [
        { rule: 'shops', selects: 'reason=Pulling', lifetime: '1s' },
        { rule: 'warnings', selects: 'Warning', lifetime: '7d' },
        { rule: 'default', selects: '', lifetime: '1h' },
      ],
      budget: { name: 'shops', events: 100, bytes: 209_715_200 },
      evicted: 7,
    })
  })

  test('a cluster says how many writes were refused, a namespace does not', async () => {
    const { json } = await ask('/retentionwindows')
    const refused = json.items.map((item: { refused?: number }) => item.refused)
    assert.deepEqual(refused, [3, undefined, undefined])
  })

  test('the table of a cluster has the cluster first, then its namespaces', async () => {
    const answered = await ask('/retentionwindows', { isTable: true })
    const rows = rowsOf(answered) as (string | number)[][]
    const shown = rows.map(([name, events, , , lifetimes, budget, evicted]) => [
      name,
      events,
      lifetimes,
      budget,
      evicted,
    ])
    assert.deepEqual(shown, [
      ['local', 3, 'namespace=shop reason=Pulling 1s, Warning 7d, others 1h', '', '9'],
      ['cart', 1, 'Warning 7d, others 1h', '', '0'],
      ['shop', 2, 'reason=Pulling 1s, Warning 7d, others 1h', '100 events, 200Mi', '7'],
    ])
    assert.deepEqual(
      answered.json.columnDefinitions.map(({ name }: { name: string }) => name),
      ['Name', 'Events', 'Bytes', 'Oldest', 'Lifetimes', 'Budget', 'Evicted'],
    )
  })

  test('the list of all clusters has a column for the cluster', async () => {
    const rows = rowsOf(await ask('/retentionwindows', { cluster: '*', isTable: true }))
    assert.deepEqual(
      (rows as string[][]).map(([cluster, name, , , , lifetimes]) => [cluster, name, lifetimes]),
      [
        ['local', 'local', 'namespace=shop reason=Pulling 1s, Warning 7d, others 1h'],
        ['local', 'cart', 'Warning 7d, others 1h'],
        ['local', 'shop', 'reason=Pulling 1s, Warning 7d, others 1h'],
        ['prod', 'prod', 'namespace=shop reason=Pulling 1s, others never'],
        ['prod', 'shop', 'reason=Pulling 1s, others never'],
      ],
    )
    const prod = rowsOf(
      await ask('/namespaces/shop/retentionwindows', { cluster: 'prod', isTable: true }),
    )
    assert.equal(prod.length, 1)
  })

  test('can be selected by name, and only listed', async () => {
    const selected = await api.call({
      at: '',
      path: `${base}/retentionwindows`,
      query: { fieldSelector: 'metadata.name=cart' },
    })
    assert.deepEqual(
      selected.json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ['cart'],
    )
    assert.equal((await ask('/namespaces/nothing/retentionwindows')).json.items.length, 0)
    assert.equal((await ask('/namespaces/shop/retentionwindows/shop')).status, 405)
    const wrong = await api.call({
      at: '',
      path: `${base}/retentionwindows`,
      query: { fieldSelector: 'type=Warning' },
    })
    assert.equal(wrong.status, 400)
  })

  // The difference `window-header` in docs/reference/compatibility.md.
  test('lists and watches of events tell how far back they go', async () => {
    const windowOf = async (at: string, cluster?: string) => {
      const { headers } = await api.call({ at, query: { limit: 1 }, ...(cluster && { cluster }) })
      return headers['tidings-window']
    }
    assert.equal(await windowOf('shop'), '2026-01-01T00:00:00.000Z')
    assert.equal(await windowOf('cart'), '2026-01-03T00:00:00.000Z')
    assert.equal(await windowOf('nothing'), undefined)
    assert.equal(await windowOf(''), '2026-01-01T00:00:00.000Z')
    assert.equal(await windowOf('', 'prod'), '2025-12-31T00:00:00.000Z')
    assert.equal(await windowOf('', '*'), '2025-12-31T00:00:00.000Z')
    // This is not a scope of its own, and the times of other namespaces must not be revealed.
    assert.equal(await windowOf('cart', '*'), undefined)
    const ending = new AbortController()
    const watch = await api.ask({ at: 'shop', query: { watch: true }, signal: ending.signal })
    assert.equal(watch.headers['tidings-window'], '2026-01-01T00:00:00.000Z')
    ending.abort()
    const one = await api.call({ at: 'shop/a' })
    assert.equal(one.headers['tidings-window'], undefined)
    await api.storage.delete({ cluster: 'local', namespace: 'shop', name: 'b' })
    await sleep(1_100)
    assert.equal(await windowOf('shop'), '2026-01-02T00:00:00.000Z')
  })
})

describe('retention windows with history', () => {
  let api: EventApiUnderTest
  const positionAtMs = Date.now() - 61_500
  withEventApi({
    options: {
      archived: () => ({
        oldestMsOf: (cluster: string) => (cluster === 'local' ? Date.now() - 30 * day : undefined),
        windowStart: () => positionAtMs - 1_000,
        position: parseVersion('7999'),
        positionAtMs,
      }),
    },
    begin: async (started) => {
      api = started
      const key = { cluster: 'local', namespace: 'shop', name: 'a' }
      await api.storage.create(key, eventBody(key, 'text'))
      await eventually('memory has it', () => api.storage.count === 1)
    },
  })

  const ask = (path: string, cluster?: string) =>
    api.call({
      at: '',
      path: `${base}${path}`,
      headers: { accept: TABLE },
      ...(cluster && { cluster }),
    })

  test('each window has the history of its cluster, even without events', async () => {
    for (const namespace of ['shop', 'gone']) {
      const { json } = await api.call({
        at: '',
        path: `${base}/namespaces/${namespace}/retentionwindows`,
      })
      const [{ events, history }] = json.items
      assert.equal(events, namespace === 'shop' ? 1 : 0)
      const { lagSeconds, oldestTime, ...rest } = history
      assert.ok(lagSeconds >= 61 && lagSeconds < 120, String(lagSeconds))
      const ageMs = Date.now() - Date.parse(oldestTime)
      assert.ok(ageMs >= 30 * day && ageMs < 30 * day + 60_000, oldestTime)
      const time = (ms: number) => new Date(ms).toISOString().replace('Z', '000Z')
      assert.deepEqual(rest, {
        position: '7999',
        positionTime: time(positionAtMs),
        untilTime: time(positionAtMs - 1_000),
      })
    }
  })

  test('the table has a column for it', async () => {
    const { json } = await ask('/retentionwindows')
    const names = json.columnDefinitions.map(({ name }: { name: string }) => name)
    assert.deepEqual(names.slice(0, 6), [
      ...['Name', 'Events', 'Bytes', 'Oldest', 'History', 'Lifetimes'],
    ])
    const cells = json.rows.map((row: { cells: unknown[] }) => [row.cells[0], row.cells[4]])
    assert.deepEqual(cells, [
      ['local', '30d'],
      ['shop', '30d'],
    ])
    const all = await ask('/retentionwindows', '*')
    assert.equal(all.json.columnDefinitions[5].name, 'History')
    assert.equal((await ask('/retentionwindows', 'prod')).json.rows.length, 0)
  })
})
