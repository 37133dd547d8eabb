/**
 * Records the data of a release: `npm run release:record -- [--program <file>]`. Starts the built
 * program, writes a few hundred events of all shapes through its API, and stores every key of its
 * etcd and every event as it is served in `test/releases/<version>/`.
 */
import { parseArgs } from 'node:util'
import { startEtcd } from '../support/etcd.ts'
import type { EventClient } from '../support/event-client.ts'
import { eventually } from '../support/eventually.ts'
import { realisticEvents } from '../support/realistic-events.ts'
import { asCore, isOldStyle } from '../support/recorder-styles.ts'
import { makeEvent, type WireList } from '../support/wire-event.ts'
import { type EventsWriter, writeShapes } from './event-shapes.ts'
import {
  PREFIX,
  type RecordedRelease,
  type ReleaseBuild,
  readKeys,
  writeRelease,
} from './recorded-release.ts'
import {
  CORE_API,
  EVENTS_API,
  getJson,
  MIRRORED_CLUSTER,
  OTHER_CLUSTER,
  ReleaseSite,
  SMALL_BUDGET,
  SMALL_NAMESPACE,
  servedEvents,
  succeed,
} from './release-site.ts'

const NOW_MS = Date.parse('2026-11-01T12:00:00Z')
const SEED = 20_261_101
/** The first compaction is done after up to two intervals of a minute. */
const WAIT_MS_MAX = 150_000
/** Keys that a recording must have besides events. */
const CONTROL_KEYS = [
  'account',
  'ages',
  'compaction',
  'sweeper',
  `mirrors/${MIRRORED_CLUSTER}`,
  `mirror-leaders/${MIRRORED_CLUSTER}`,
].map((name) => `${PREFIX}control/${name}`)

export async function recordRelease(program: string | undefined): Promise<RecordedRelease> {
  await using etcd = await startEtcd()
  await using site = await ReleaseSite.open({ etcd, program })
  const origin = await site.startOrigin()
  await writeRealistic(origin, 'local', { count: 40, seed: SEED + 1 })
  const { server, client } = await site.start(['--etcd-compaction-interval=1m'])
  await writeRealistic(client, 'local', { count: 150, seed: SEED })
  await writeRealistic(client, OTHER_CLUSTER, { count: 30, seed: SEED + 2 })
  await writeShapes(client)
  for (let number = 0; number < 3 * SMALL_BUDGET; number++) {
    await writer(client, 'local')(makeEvent(SMALL_NAMESPACE, `small.${number}`))
  }
  await eventually(
    'the mirror and the budget are done',
    async () =>
      (await count(client, MIRRORED_CLUSTER)) === 40 &&
      (await count(client, 'local', `/namespaces/${SMALL_NAMESPACE}`)) === SMALL_BUDGET,
    WAIT_MS_MAX,
  )
  await eventually(
    `etcd has ${CONTROL_KEYS.join(', ')}`,
    async () => {
      const { keys } = await readKeys(etcd)
      return CONTROL_KEYS.every((wanted) => keys.some(({ key }) => key === wanted))
    },
    WAIT_MS_MAX,
  )
  const { keys, revision } = await readKeys(etcd)
  const version = JSON.parse((await server.ask('/version')).body)
  const served = await servedEvents(client)
  return { build: buildOf(version), revision, originCa: site.originCa, keys, served }
}

function buildOf({ gitVersion, gitCommit, gitTreeState }: Record<string, string>): ReleaseBuild {
  const [, version = ''] = /\+tidings-(\d+\.\d+\.\d+(?:-[\w.]+)?)$/.exec(gitVersion ?? '') ?? []
  return { version, gitCommit: gitCommit ?? '', gitTreeState: gitTreeState ?? '' }
}

/** Old-style events can only be created as core/v1. */
function writer(client: EventClient, cluster: string): EventsWriter {
  return async (event) => {
    const isOld = isOldStyle(event)
    const api = `/clusters/${cluster}/${isOld ? CORE_API : EVENTS_API}`
    await succeed(client, {
      method: 'POST',
      path: `${api}/namespaces/${event.metadata.namespace}/events`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(isOld ? asCore(event) : event),
    })
  }
}

async function writeRealistic(
  client: EventClient,
  cluster: string,
  { count, seed }: { readonly count: number; readonly seed: number },
): Promise<void> {
  const write = writer(client, cluster)
  for (const event of realisticEvents({ seed, count, nowMs: NOW_MS })) await write(event)
}

async function count(client: EventClient, cluster: string, scope = ''): Promise<number> {
  const path = `/clusters/${cluster}/${EVENTS_API}${scope}/events`
  return (await getJson<WireList>(client, path)).items.length
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { program: { type: 'string' } } })
  const release = await recordRelease(values.program)
  const target = await writeRelease(release)
  process.stdout.write(
    `${release.served.length} events and ${release.keys.length} keys of ${release.build.version} in ${target}\n`,
  )
}
