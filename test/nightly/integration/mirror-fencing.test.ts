/** Two replicas mirror one cluster through one etcd, and one of them is paused past its lease. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Event } from '../../../src/api/event.ts'
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { MemoryOrigin, seededRandom } from '../../../src/mirror/memory-origin.fixture.ts'
import type { MirrorManagerOptions } from '../../../src/mirror/mirror-manager.ts'
import {
  compareOriginVersions,
  heldBy,
  type OriginVersion,
} from '../../../src/registry/origin-version.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { MirrorReplica, mirroredCluster } from '../../support/mirror-replica.ts'

const { signal: noSignal } = new AbortController()
const leaseTtlSeconds = 2
const scope = { cluster: 'c', namespace: undefined }

/** Every change of a cluster's events, as etcd applied them. */
class Recorder {
  readonly violations: string[] = []
  readonly #versions = new Map<string, { uid: string; version: OriginVersion }>()
  readonly #end = new AbortController()
  readonly #running: Promise<void>

  constructor(replica: MirrorReplica) {
    this.#running = this.#run(replica)
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run({ cached }: MirrorReplica): Promise<void> {
    const { signal } = this.#end
    await cached.synced
    const from = await cached.currentVersion({ signal })
    for await (const { items } of cached.watch(scope, { from, signal })) {
      for (const { type, stored } of items) {
        if (type === 'put') this.#check(stored)
        else this.#versions.delete(stored.key.name)
      }
    }
  }

  #check(stored: StoredEvent): void {
    const { name } = stored.key
    const { uid, version } = heldBy(stored)
    if (version === undefined) {
      this.violations.push(`${name} has no version`)
      return
    }
    const last = this.#versions.get(name)
    if (last !== undefined && compareOriginVersions(last.version, version) >= 0) {
      const versions = `${last.version.resourceVersion} to ${version.resourceVersion}`
      this.violations.push(`${name} went back from ${versions}`)
    }
    this.#versions.set(name, { uid, version })
  }
}

/** What the mirror has that differs from the origin. */
async function differences(replica: MirrorReplica, origin: MemoryOrigin): Promise<string[]> {
  const { items } = await replica.cached.list(scope, {
    lane: aLane(),
    limit: 10_000,
    signal: noSignal,
  })
  const here = new Map(items.map(({ key, body }) => [key.name, body.toString()]))
  return [...origin.events.values()].flatMap(({ event }) => {
    const body = here.get(event.metadata.name ?? '')
    if (body === undefined) return [`${event.metadata.name} is missing`]
    const { note, metadata } = JSON.parse(body) as Event
    const isSame = note === event.note && metadata.uid === event.metadata.uid
    return isSame ? [] : [`${event.metadata.name}: ${note} instead of ${event.note}`]
  })
}

/** Takes over from a paused replica while both have writes to do. */
async function takeOver(
  etcd: EtcdCluster,
  spoil?: (storage: MirrorManagerOptions['storage']) => MirrorManagerOptions['storage'],
) {
  const random = seededRandom(7)
  const origin = new MemoryOrigin(random)
  origin.faults = { breaks: 0.01, repeats: 0.05 }
  const write = (count: number) => {
    for (let index = 0; index < count; index++) {
      const name = `e${Math.floor(random() * 30)}`
      if (random() < 0.15) origin.delete(name)
      else origin.put(name)
    }
  }
  const clusters = new Map([['c', mirroredCluster('c')]])
  const options = { clusters, originFor: () => origin, leaseTtlSeconds }
  await using first = new MirrorReplica(etcd.endpoints, 'first', {
    ...options,
    ...(spoil && { spoil }),
  })
  const leads = ({ mirrors }: MirrorReplica) => mirrors.stats().get('c')?.isLeader === true
  await eventually('the first replica leads', () => leads(first))
  await using second = new MirrorReplica(etcd.endpoints, 'second', options)
  const isEqual = async () => (await differences(second, origin)).length === 0
  const recorder = new Recorder(second)
  write(200)
  await eventually('the first replica has stored everything', isEqual, 10_000)

  first.pause()
  // These reach the paused replica, whose writes are held, and the other after its election.
  write(100)
  origin.faults = {}
  origin.put('ghost')
  const pending = () => first.mirrors.stats().get('c')?.pending ?? 0
  await eventually('the paused replica has received them', () => pending() > 20)
  // The other replica never sees this event: its late write is refused by the fence alone.
  origin.delete('ghost')
  origin.compacted = origin.version
  await eventually('the second replica leads', () => leads(second), 15_000)
  write(200)
  await eventually('the second replica has stored everything', isEqual, 15_000)
  first.resume()
  await eventually('the first replica no longer leads', () => !leads(first), 15_000)
  write(100)
  const hasGhost = async () => {
    const { items } = await second.cached.list(scope, {
      lane: aLane(),
      limit: 10_000,
      signal: noSignal,
    })
    return items.some(({ key }) => key.name === 'ghost')
  }
  const { violations } = recorder
  await (spoil === undefined
    ? eventually('the rest is stored', isEqual, 15_000)
    : eventually('the damage is found', async () => violations.length > 0 && (await hasGhost())))
  const fenced = first.mirrors.stats().get('c')?.counters.fenced ?? 0
  const { statuses } = second.mirrors
  const isReported = () => statuses.get('c').replica === 'second'
  if (spoil === undefined) await eventually('the new leader is reported', isReported, 15_000)
  await recorder.stop()
  return { violations, fenced, hasGhost: await hasGhost() }
}

describe('two mirrors of one cluster', () => {
  let etcd: EtcdCluster
  before(async () => {
    etcd = await startEtcd()
  })
  after(() => etcd[Symbol.asyncDispose]())

  test('a mirror that was paused past its lease and resumes changes nothing', async () => {
    const { violations, fenced, hasGhost } = await takeOver(etcd)
    assert.ok(!hasGhost, 'an event that was deleted at the origin meanwhile')
    assert.deepEqual(violations, [])
    assert.ok(fenced > 0, 'its late writes were refused')
  })

  test('the check above finds writes without a fence and without a comparison of versions', async () => {
    await using other = await startEtcd()
    await takeOver(other, (storage) => ({
      list: (of, options) => storage.list(of, options),
      update: (key, change) => storage.update(key, () => change(undefined)),
    }))
  })
})
