/**
 * Starts a program on the recorded data of another version, and checks that it reads every event
 * as that version served it, and that lists, watches, changes and expiry work on it.
 */
import assert from 'node:assert/strict'
import { isControlValue } from '../../src/storage/etcd/control/control-values.ts'
import { controlName } from '../../src/storage/etcd/keys.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import type { EventClient } from '../support/event-client.ts'
import { eventually } from '../support/eventually.ts'
import { statesOf, WatchLog } from '../support/watch-sequence.ts'
import { makeEvent, type WireEvent, type WireList } from '../support/wire-event.ts'
import {
  loadKeys,
  PREFIX,
  type RecordedRelease,
  readKeys,
  type ServedEvent,
} from './recorded-release.ts'
import {
  CLUSTERS,
  CORE_API,
  EVENTS_API,
  getJson,
  MIRRORED_CLUSTER,
  ReleaseSite,
  type SiteOptions,
  servedEvents,
  succeed,
} from './release-site.ts'

const PAGE = 37
const TTL_SECONDS = 2
/** Leases of dead leaders, one election, the lifetime, and a busy machine. */
const EXPIRY_MS_MAX = 40_000

/** `program` undefined is the build of this tree. Rejects with the first difference. */
export async function checkData(release: RecordedRelease, program?: string): Promise<void> {
  await using etcd = await startEtcd()
  await loadKeys(etcd, release)
  const setting = { etcd, program, originCa: release.originCa }
  await checkServing(setting, release)
  await checkExpiry(setting)
}

async function checkServing(setting: SiteOptions, release: RecordedRelease): Promise<void> {
  await using site = await ReleaseSite.open(setting)
  const { server, client } = await site.start()
  assert.deepEqual(await servedEvents(client), release.served)
  await checkGets(client, release.served)
  await checkPages(client, release.served)
  await checkWatch(client, release)
  await checkChanges(client)
  const metrics = (await server.ask('/metrics')).body
  const unreadable = [...metrics.matchAll(/^tidings_unreadable_values\S* (\S+)$/gm)]
  assert.ok(unreadable.length > 0 && unreadable.every(([, count]) => count === '0'))
  await checkControlKeys(setting.etcd, release)
}

async function checkGets(client: EventClient, served: readonly ServedEvent[]): Promise<void> {
  const get = async (api: string, cluster: string, { metadata }: WireEvent) => {
    const { namespace, name } = metadata
    const path = `/clusters/${cluster}/${api}/namespaces/${namespace}/events/${name}`
    const { kind, apiVersion, ...event } = await getJson<WireEvent>(client, path)
    assert.deepEqual([kind, apiVersion], ['Event', api.replace(/^apis?\//, '')])
    return event
  }
  for (const { cluster, events, core } of served) {
    const [asEvents, asCore] = await Promise.all([
      get(EVENTS_API, cluster, events),
      get(CORE_API, cluster, core),
    ])
    assert.deepEqual([asEvents, asCore], [events, core])
  }
}

async function checkPages(client: EventClient, served: readonly ServedEvent[]): Promise<void> {
  for (const cluster of CLUSTERS) {
    const found: WireEvent[] = []
    let next: string | undefined = ''
    while (next !== undefined) {
      const query: string = `limit=${PAGE}${next === '' ? '' : `&continue=${next}`}`
      const path = `/clusters/${cluster}/${EVENTS_API}/events?${query}`
      const page: WireList = await getJson<WireList>(client, path)
      found.push(...page.items)
      next = page.metadata.continue
    }
    const recorded = served.filter((event) => event.cluster === cluster)
    assert.deepEqual(
      found,
      recorded.map(({ events }) => events),
    )
  }
}

/** A client that watched at the old version resumes at the new one, and gets what changes now. */
async function checkWatch(
  client: EventClient,
  { served, revision }: RecordedRelease,
): Promise<void> {
  const local = served.filter(({ cluster }) => cluster === 'local').map(({ events }) => events)
  const all = await client.watch(undefined, { sendInitialEvents: true, ...INITIAL })
  using log = new WatchLog(all)
  await log.until('the initial events', (frames) => frames.at(-1)?.type === 'BOOKMARK')
  assert.deepEqual(statesOf(log.frames.slice(0, -1).map(({ object }) => object)), statesOf(local))
  const resumed = await client.watch(undefined, { resourceVersion: revision * 1000 })
  using later = new WatchLog(resumed)
  const created = await client.create(makeEvent('shapes', 'after-the-upgrade'))
  await later.reach(Number(created.metadata.resourceVersion))
  assert.deepEqual(
    later.frames.map(({ type, object }) => [type, object.metadata.name]),
    [['ADDED', 'after-the-upgrade']],
  )
}

const INITIAL = { resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true } as const

async function checkChanges(client: EventClient): Promise<void> {
  const before = await client.get('shapes', 'plain')
  const patched = await client.patch('shapes', 'plain', {
    type: 'merge-patch',
    patch: { metadata: { labels: { upgraded: 'yes' } } },
  })
  assert.ok(versionOf(patched) > versionOf(before))
  const updated = await client.update({ ...patched, metadata: { ...patched.metadata, labels: {} } })
  assert.ok(versionOf(updated) > versionOf(patched))
  await succeed(client, {
    method: 'PATCH',
    path: `${client.path('shapes', 'applied')}?fieldManager=one&force=true`,
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: JSON.stringify(makeEvent('shapes', 'applied', { labels: { a: 'new' } })),
  })
  assert.deepEqual((await client.get('shapes', 'applied')).metadata.labels, { a: 'new', b: 'two' })
  await client.delete('shapes', 'plain')
  const { items } = await client.list('shapes')
  const names = items.map(({ metadata }) => metadata.name)
  assert.ok(!names.includes('plain'))
  // An event that was waiting for its finalizer ends when that is removed.
  await client.patch('shapes', 'ending', {
    type: 'merge-patch',
    patch: { metadata: { finalizers: null } },
  })
  await assert.rejects(client.get('shapes', 'ending'), { status: 404 })
}

function versionOf({ metadata }: WireEvent): number {
  return Number(metadata.resourceVersion)
}

/** The account goes on from its totals, and the mirror from its position. */
async function checkControlKeys(etcd: EtcdCluster, release: RecordedRelease): Promise<void> {
  const recordAt = (keys: RecordedRelease['keys'], name: string) =>
    JSON.parse(keys.find(({ key }) => key === `${PREFIX}control/${name}`)?.value ?? '{}')
  const { keys } = await readKeys(etcd)
  const mirror = `mirrors/${MIRRORED_CLUSTER}`
  const [was, is] = [recordAt(release.keys, mirror), recordAt(keys, mirror)]
  assert.deepEqual([is.positions, is.epoch], [was.positions, was.epoch])
  const [before, now] = [recordAt(release.keys, 'account'), recordAt(keys, 'account')]
  for (const [kind, counts] of Object.entries(before)) {
    if (typeof counts !== 'object' || counts === null) continue
    for (const [name, count] of Object.entries(counts)) {
      assert.ok(now[kind][name] >= count, `${kind} of ${name}: ${now[kind][name]} after ${count}`)
    }
  }
  assert.deepEqual(refusedKeys(keys), [], 'the recorded version would not start beside them')
}

/** Keys beside which no version starts: rules 4 and 5 of docs/explanation/versions.md. */
export function refusedKeys(keys: RecordedRelease['keys']): readonly string[] {
  const [events, control] = [`${PREFIX}events/`, `${PREFIX}control/`]
  const isAccepted = (key: string, value: string) => {
    const name = key.startsWith(control) && controlName(PREFIX.slice(0, -1), Buffer.from(key))
    // The value was decoded: what is not UTF-8 has become U+FFFD.
    return name && isControlValue(name, Buffer.from(value)) && !value.includes('\ufffd')
  }
  return keys
    .filter(({ key, value }) => !key.startsWith(events) && !isAccepted(key, value))
    .map(({ key }) => key)
}

/** All events of the recording expire; only a short lifetime makes a test of it. */
async function checkExpiry(setting: SiteOptions): Promise<void> {
  await using site = await ReleaseSite.open(setting)
  const { client } = await site.startPlain([`--event-ttl=${TTL_SECONDS}s`])
  await eventually(
    'all events have expired',
    async () => {
      const { items } = await getJson<WireList>(client, `/clusters/*/${EVENTS_API}/events?limit=1`)
      return items.length === 0
    },
    EXPIRY_MS_MAX,
  )
}
