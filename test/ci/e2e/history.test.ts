/** Events that have expired, through the API of the built program. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { type Ask, runToEnd, Tidings } from '../../support/tidings.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const now = Date.now()
const token = 'history-admin'
const reader = 'history-reader'

interface Made {
  readonly namespace: string
  readonly name: string
  readonly agoMs: number
  readonly type?: string
  readonly reason?: string
  readonly pod?: string
  readonly note?: string
  readonly count?: number
}

/** A week of events, which all expire at once. */
const made: readonly Made[] = [
  ...Array.from({ length: 7 }, (_, day) => ({
    namespace: 'shop',
    name: `daily-${day}`,
    agoMs: day * DAY + 90 * MINUTE,
    pod: 'web-0',
    reason: 'Killing',
  })),
  ...Array.from({ length: 40 }, (_, index) => ({
    namespace: 'shop',
    name: `burst-${String(index).padStart(2, '0')}`,
    agoMs: 3 * DAY + index * MINUTE,
    type: 'Warning',
    reason: 'BackOff',
    pod: `web-${index % 4}`,
    note: `Back-off restarting failed container, attempt ${index}`,
  })),
  { namespace: 'pay', name: 'other', agoMs: 3 * DAY, reason: 'Secret', note: 'of another team' },
]

interface List {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly namespace: string; readonly uid: string }
  }[]
  readonly metadata: { readonly continue?: string }
}

describe('history behind the API', () => {
  let stack: AsyncDisposableStack
  let server: Tidings
  let folder: string
  let etcdFlags: readonly string[]

  before(async () => {
    stack = new AsyncDisposableStack()
    const etcd = stack.use(await startEtcd())
    folder = await mkdtemp(join(tmpdir(), 'tidings-history-e2e-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    await writeFile(
      join(folder, 'tokens.csv'),
      `${token},admin,1,system:masters\n${reader},reader,2\n`,
    )
    await writeFile(join(folder, 'policy.yaml'), access)
    etcdFlags = [`--etcd-servers=${etcd.endpoints.join(',')}`]
    server = stack.use(
      await Tidings.start([
        ...etcdFlags,
        `--token-auth-file=${folder}/tokens.csv`,
        `--rbac-policy-path=${folder}/policy.yaml`,
        `--history=file://${folder}/archive`,
        '--history-segment-interval=1s',
        '--event-ttl=2s',
      ]),
    )
    await server.until('/readyz', ({ status }) => status === 200, 60_000)
    await Promise.all(made.map((event) => create(server, event)))
    await eventually(
      'everything has expired',
      async () => (await list('/events')).items.length === 0,
      60_000,
    )
  })
  after(() => stack.disposeAsync())

  async function ask(path: string, options: Ask & { as?: string } = {}) {
    const { as = token, ...rest } = options
    return server.ask(path, {
      ...rest,
      headers: { authorization: `Bearer ${as}`, ...rest.headers },
    })
  }

  async function list(path: string, query: Record<string, string> = {}, as = token): Promise<List> {
    const parameters = new URLSearchParams(query)
    const { status, body } = await ask(`/apis/events.k8s.io/v1${path}?${parameters}`, { as })
    assert.equal(status, 200, body)
    return JSON.parse(body)
  }

  const namesOf = ({ items }: List) => items.map(({ metadata }) => metadata.name)
  const selected = (fieldSelector: string, more: Record<string, string> = {}) =>
    list('/events', { fieldSelector, ...more })

  test('a list with since has what has expired, once', async () => {
    const all = await selected('since=30d')
    assert.equal(all.items.length, made.length)
    assert.equal(new Set(all.items.map(({ metadata }) => metadata.uid)).size, made.length)
    const expected = made.map(({ namespace, name }) => `${namespace}/${name}`).sort()
    const found = all.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    assert.deepEqual(found, expected)
  })

  test('a list without since, a get and a watch do not read it', async () => {
    assert.deepEqual(namesOf(await list('/events')), [])
    const path = '/apis/events.k8s.io/v1/namespaces/shop/events/daily-1'
    assert.equal((await ask(path)).status, 404)
    const watch = await ask(
      '/apis/events.k8s.io/v1/events?watch=1&timeoutSeconds=1&fieldSelector=since%3D30d',
    )
    assert.equal(watch.body, '')
  })

  test('both bounds, selectors and orders are those of other lists', async () => {
    assert.deepEqual(namesOf(await selected('since=30d,until=2d12h,reason=Killing,order=newest')), [
      'daily-3',
      'daily-4',
      'daily-5',
      'daily-6',
    ])
    assert.deepEqual(namesOf(await selected('since=30d,reason=Killing,order=oldest')).slice(0, 2), [
      'daily-6',
      'daily-5',
    ])
    assert.equal((await selected('since=30d,type=Warning')).items.length, 40)
    assert.equal((await selected('since=30d,mentions=Pod/web-0')).items.length, 17)
    assert.equal((await selected('since=30d,text=attempt 7')).items.length, 1)
    assert.equal(
      (await selected('since=30d,regarding.name=web-3,reason!=Killing')).items.length,
      10,
    )
    assert.equal((await selected('until=3d12h,order=newest,limit=3')).items.length, 3)
    assert.deepEqual(namesOf(await selected('since=30d,metadata.name=daily-2')), ['daily-2'])
  })

  for (const order of ['newest', 'oldest', undefined]) {
    test(`pages have each event once, in order: ${order ?? 'key'}`, async () => {
      const fieldSelector = `since=30d${order === undefined ? '' : `,order=${order}`}`
      const whole = namesOf(await selected(fieldSelector))
      const paged: string[] = []
      let token: string | undefined
      do {
        const page: List = await selected(fieldSelector, {
          limit: '7',
          ...(token !== undefined && { continue: token }),
        })
        paged.push(...namesOf(page))
        token = page.metadata.continue
      } while (token)
      assert.deepEqual(paged, whole)
    })
  }

  test('pages have each of the events that had the same name', async () => {
    const [namespace, name] = ['reused', 'same-name']
    const found = async (limit: number) => {
      const uids: string[] = []
      let token = ''
      do {
        const page = await list(`/namespaces/${namespace}/events`, {
          fieldSelector: 'since=30d',
          limit: String(limit),
          ...(token !== '' && { continue: token }),
        })
        uids.push(...page.items.map(({ metadata }) => metadata.uid))
        token = page.metadata.continue ?? ''
      } while (token !== '')
      return uids
    }
    for (const count of [1, 2, 3, 4]) {
      await create(server, { namespace, name, agoMs: count * MINUTE })
      await create(server, { namespace, name: `other-${count}`, agoMs: count * MINUTE })
      // One of them is in memory, the others are not.
      const uids = await found(500)
      assert.equal(new Set(uids).size, 2 * count)
      for (const limit of [1, 2, 3, 5]) {
        assert.deepEqual((await found(limit)).sort(), [...uids].sort(), `by ${limit}`)
      }
      await eventually(
        'they have expired',
        async () => (await list(`/namespaces/${namespace}/events`)).items.length === 0,
        30_000,
      )
    }
  })

  test('what memory still has is in the same list', async () => {
    await create(server, { namespace: 'shop', name: 'daily-now', agoMs: 0, reason: 'Killing' })
    const names = namesOf(await selected('since=30d,reason=Killing,order=newest'))
    assert.deepEqual(names.slice(0, 2), ['daily-now', 'daily-0'])
    assert.equal(names.length, 8)
  })

  test('summaries and histograms count it', async () => {
    const summaries = await ask(
      '/apis/tidings.dev/v1alpha1/eventsummaries?groupBy=reason&fieldSelector=since%3D30d',
    )
    assert.equal(summaries.status, 200, summaries.body)
    const groups = JSON.parse(summaries.body).items as readonly {
      readonly group: { readonly reason: string }
      readonly occurrences: number
      readonly events: number
      readonly objects: number
    }[]
    const backOff = groups.find(({ group }) => group.reason === 'BackOff')
    assert.deepEqual(
      [backOff?.occurrences, backOff?.events, backOff?.objects],
      [40, 40, 4],
      summaries.body,
    )
    const histogram = await ask(
      '/apis/tidings.dev/v1alpha1/eventhistograms?by=reason&buckets=30&fieldSelector=since%3D30d',
    )
    assert.equal(histogram.status, 200, histogram.body)
    const buckets = JSON.parse(histogram.body).items as readonly {
      readonly counts?: readonly { readonly name: string; readonly occurrences: number }[]
    }[]
    const counted = buckets
      .flatMap(({ counts = [] }) => counts)
      .filter(({ name }) => name === 'BackOff')
      .reduce((sum, { occurrences }) => sum + occurrences, 0)
    assert.equal(counted, 40)
  })

  test('a user of one namespace sees that namespace only', async () => {
    const own = await list('/namespaces/shop/events', { fieldSelector: 'since=30d' }, reader)
    assert.ok(own.items.every(({ metadata }) => metadata.namespace === 'shop'))
    assert.ok(own.items.length >= made.length - 1)
    const all = await ask('/apis/events.k8s.io/v1/events?fieldSelector=since%3D30d', { as: reader })
    assert.equal(all.status, 403)
    const other = await ask(
      '/apis/events.k8s.io/v1/namespaces/pay/events?fieldSelector=since%3D30d',
      { as: reader },
    )
    assert.equal(other.status, 403)
  })

  test('retention windows say how far back it goes', async () => {
    const { body } = await ask('/apis/tidings.dev/v1alpha1/retentionwindows')
    const [window] = JSON.parse(body).items
    const { oldestTime, position } = window.history
    assert.ok(Date.parse(oldestTime) <= now - 6 * DAY, body)
    assert.match(position, /^\d+$/)
  })

  test('its commands verify, purge and recover it', async () => {
    const run = (...args: readonly string[]) =>
      runToEnd(['history', ...args, `--history=file://${folder}/archive`, ...etcdFlags])
    const verified = await run('verify')
    assert.match(verified.stdout, /no faults/)
    const purged = await run('purge', '--cluster=local', '--namespace=pay')
    assert.match(purged.stdout, /removed 1 rows of local\/pay/)
    assert.deepEqual(namesOf(await selected('since=30d,metadata.namespace=pay')), [])
    assert.equal((await selected('since=30d,reason=BackOff')).items.length, 40)
    assert.match((await run('verify')).stdout, /no faults/)
    const recovered = await run('recover')
    assert.equal(recovered.code, 0, JSON.stringify(recovered))
    assert.match((await run('verify')).stdout, /no faults/)
  })
})

const access = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader, namespace: shop }
rules:
- { apiGroups: [events.k8s.io], resources: [events], verbs: [list, get, watch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: User, name: reader, apiGroup: rbac.authorization.k8s.io }]
`

async function create(server: Tidings, event: Made): Promise<void> {
  const { namespace, name, agoMs, type = 'Normal', reason = 'Pulled', pod = 'web-9' } = event
  const { status, body } = await server.ask(
    `/apis/events.k8s.io/v1/namespaces/${namespace}/events`,
    {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace },
        eventTime: new Date(now - agoMs).toISOString().replace('Z', '000Z'),
        reportingController: 'example.com/kubelet',
        reportingInstance: 'node-1',
        action: 'Test',
        reason,
        type,
        regarding: { kind: 'Pod', namespace, name: pod, apiVersion: 'v1' },
        note: event.note ?? 'text',
      }),
    },
  )
  assert.equal(status, 201, body)
}
