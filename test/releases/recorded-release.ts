/**
 * The data that a release left in etcd, with the events as it served them.
 *
 * Resource versions come from revisions of etcd. So keys are loaded in the order of their
 * revisions, and the revisions between them are used up by writes of another key: a loaded store
 * has the revisions of the recorded one.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EtcdClient, prefixEnd } from '../../src/etcd/client.ts'
import type { EtcdCluster } from '../support/etcd.ts'
import type { WireEvent } from '../support/wire-event.ts'

export const PREFIX = '/tidings/'

export interface ReleaseBuild {
  readonly version: string
  readonly gitCommit: string
  readonly gitTreeState: string
}

/** A key of etcd with its value, which is text in all forms that tidings has. */
export interface RecordedKey {
  readonly key: string
  readonly value: string
  readonly revision: number
  readonly isLeased?: true
}

/** An event as it is in the lists of both APIs, without `kind` and `apiVersion`. */
export interface ServedEvent {
  readonly cluster: string
  readonly events: WireEvent
  readonly core: WireEvent
}

export interface RecordedRelease {
  readonly build: ReleaseBuild
  /** The revision of the store when the keys were read. */
  readonly revision: number
  /** The certificate of the mirrored cluster: a mirror begins again when it is another. */
  readonly originCa: string
  readonly keys: readonly RecordedKey[]
  readonly served: readonly ServedEvent[]
}

const folder = import.meta.dirname
const FILLER = Buffer.from('/filler')
/** Short, so that the replica that starts does not wait long for the dead leader of the recording. */
const LEASE_SECONDS = 5
const RENEW_MS = 1_000
const FILLERS_AT_ONCE = 50

/** The releases with recorded data, oldest first. */
export function recordedVersions(): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort(new Intl.Collator('en', { numeric: true }).compare)
}

export function readRelease(version: string): RecordedRelease {
  const lines = (name: string) =>
    readFileSync(join(folder, version, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  const text = readFileSync(join(folder, version, 'release.json'), 'utf8')
  const { revision, originCa, ...build } = JSON.parse(text)
  return { build, revision, originCa, keys: lines('etcd.jsonl'), served: lines('served.jsonl') }
}

export async function writeRelease(release: RecordedRelease): Promise<string> {
  const { build, revision, originCa, keys, served } = release
  const target = join(folder, build.version)
  const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  await mkdir(target, { recursive: true })
  await writeFile(
    join(target, 'release.json'),
    `${JSON.stringify({ ...build, revision, originCa }, undefined, 2)}\n`,
  )
  await writeFile(join(target, 'etcd.jsonl'), lines(keys))
  await writeFile(join(target, 'served.jsonl'), lines(served))
  return target
}

/** Everything under the prefix, at one revision. */
export async function readKeys(
  etcd: EtcdCluster,
): Promise<Pick<RecordedRelease, 'keys' | 'revision'>> {
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 10_000 })
  try {
    const key = Buffer.from(PREFIX)
    const { kvs, revision } = await client.range({ key, rangeEnd: prefixEnd(key) })
    const keys = kvs.map((kv) => ({
      key: kv.key.toString(),
      value: kv.value.toString(),
      revision: kv.modRevision,
      ...(kv.lease === 0n ? {} : { isLeased: true as const }),
    }))
    return { keys: keys.sort((a, b) => a.revision - b.revision), revision }
  } finally {
    client.close()
  }
}

/** Makes an empty etcd the one of the recording, except for the history before it. */
export async function loadKeys(etcd: EtcdCluster, recorded: RecordedRelease): Promise<void> {
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 10_000 })
  const { id: lease } = await client.grantLease(LEASE_SECONDS)
  // If it expired meanwhile, the deletes of its keys would use up revisions.
  const renewal = setInterval(() => void client.keepLeaseAlive(lease).catch(() => {}), RENEW_MS)
  try {
    let current = (await client.range({ key: FILLER })).revision
    const byRevision = Map.groupBy(recorded.keys, ({ revision }) => revision)
    for (const [revision, keys] of byRevision) {
      await fill(client, revision - 1 - current)
      const puts = keys.map(({ key, value, isLeased }) => ({
        type: 'put' as const,
        key: Buffer.from(key),
        value: Buffer.from(value),
        lease: isLeased === true ? lease : undefined,
      }))
      current = (await client.txn({ success: puts })).revision
      if (current !== revision) throw new Error(`revision ${current} in place of ${revision}`)
    }
    await fill(client, recorded.revision - current)
    await client.txn({ success: [{ type: 'delete', key: FILLER }] })
  } finally {
    clearInterval(renewal)
    client.close()
  }
}

async function fill(client: EtcdClient, count: number): Promise<void> {
  const put = () => client.txn({ success: [{ type: 'put', key: FILLER, value: Buffer.from('') }] })
  for (let left = count; left > 0; left -= FILLERS_AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(left, FILLERS_AT_ONCE) }, put))
  }
}
