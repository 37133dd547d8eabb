import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { KnownOwners } from '../incidents/known-owners.ts'
import { silentLog } from '../lib/log/log.ts'
import { fieldsIn } from '../storage/event-fields.ts'
import { SteppedClock } from './follower.fixture.ts'
import { MemoryOwners } from './memory-owners.fixture.ts'
import { OwnerWatches } from './owner-watches.ts'

const EVERYTHING = [
  ['pods', true],
  ['replicasets', true],
  ['jobs', true],
]

let clock = new SteppedClock()

function start(origin: MemoryOwners, namespaces?: readonly string[]) {
  const known = new KnownOwners()
  const warnings: string[] = []
  const infos: string[] = []
  const log = {
    ...silentLog,
    warn: (message: string) => void warnings.push(message),
    info: (message: string) => void infos.push(message),
  }
  const watches = new OwnerWatches({ origin, known, cluster: 'c', namespaces, clock, log })
  const ending = new AbortController()
  const running = watches.run(ending.signal)
  const stop = async (): Promise<void> => {
    ending.abort()
    await running
  }
  const ownerOf = (name: string, namespace = 'shop', kind = 'Pod'): string => {
    const regarding = { kind, namespace, name }
    const { rule, ...workload } = known.resolve('c', fieldsIn({ regarding }))
    return `${workload.kind}/${workload.name} by ${rule}`
  }
  return { known, watches, warnings, infos, stop, ownerOf }
}

describe('OwnerWatches', () => {
  beforeEach(() => {
    clock = new SteppedClock()
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('lists pods, ReplicaSets and Jobs, and follows their changes', async () => {
    const origin = new MemoryOwners()
    origin.put('pods/shop/odd', 'ReplicaSet/odd-set')
    origin.put('replicasets/shop/odd-set', 'Rollout/web')
    origin.put('jobs/shop/nightly-odd', 'CronJob/nightly')
    origin.put('pods/shop/bare-x2k4q')
    const { ownerOf, watches, stop } = start(origin)
    assert.deepEqual([...watches.following.values()], [false, false, false])
    await clock.advance(5_000)
    assert.equal(ownerOf('odd'), 'Rollout/web by owner')
    assert.equal(ownerOf('nightly-odd', 'shop', 'Job'), 'CronJob/nightly by owner')
    assert.equal(ownerOf('bare-x2k4q'), 'Pod/bare-x2k4q by owner')
    origin.put('pods/shop/late', 'StatefulSet/db')
    origin.put('pods/shop/bare-x2k4q', 'Job/bare')
    origin.delete('pods/shop/odd')
    await clock.advance(500)
    assert.equal(ownerOf('late'), 'StatefulSet/db by owner')
    assert.equal(ownerOf('bare-x2k4q'), 'Job/bare by owner')
    assert.equal(ownerOf('odd'), 'Rollout/web by owner')
    assert.equal(watches.message, '')
    assert.deepEqual([...watches.following], EVERYTHING)
    await stop()
    assert.equal(watches.following.size, 0)
  })

  test('reads many objects in pages, one at a time', async () => {
    const origin = new MemoryOwners()
    for (let index = 0; index < 600; index++) origin.put(`pods/shop/p${index}`, 'DaemonSet/agent')
    const { ownerOf, stop } = start(origin)
    await clock.advance(10_000)
    assert.equal(origin.requests.filter((request) => request === 'list pods').length, 3)
    assert.equal(origin.listingMost, 1)
    assert.equal(ownerOf('p599'), 'DaemonSet/agent by owner')
    await stop()
  })

  test('asks for the namespaces of the mirror, and takes nothing from others', async () => {
    const origin = new MemoryOwners()
    origin.put('pods/shop/a', 'Job/a')
    origin.put('pods/billing/b', 'Job/b')
    origin.put('pods/other/c', 'Job/c')
    const { ownerOf, watches, stop } = start(origin, ['shop', 'billing'])
    await clock.advance(10_000)
    assert.deepEqual([...watches.following], EVERYTHING)
    // This origin watches all namespaces.
    origin.put('pods/other/d', 'Job/d')
    await clock.advance(500)
    assert.equal(ownerOf('a'), 'Job/a by owner')
    assert.equal(ownerOf('b', 'billing'), 'Job/b by owner')
    assert.equal(ownerOf('c', 'other'), 'Pod/c by self')
    assert.equal(ownerOf('d', 'other'), 'Pod/d by self')
    await stop()
  })

  test('a 403 is reported and logged once, repeated slowly, and affects nothing else', async () => {
    const origin = new MemoryOwners()
    origin.forbidden.add('pods').add('jobs')
    origin.put('pods/shop/a', 'Job/a')
    origin.put('replicasets/shop/b', 'Deployment/b')
    const { ownerOf, watches, warnings, infos, stop } = start(origin)
    await clock.advance(5_000)
    assert.deepEqual(
      [...watches.following],
      [
        ['pods', false],
        ['replicasets', true],
        ['jobs', false],
      ],
    )
    const message = 'owners of pods, jobs are unknown: the origin responded 403: pods is forbidden'
    assert.equal(watches.message, message)
    assert.equal(ownerOf('b', 'shop', 'ReplicaSet'), 'Deployment/b by owner')
    await clock.advance(600_000)
    const lists = origin.requests.filter((request) => request === 'list pods').length
    assert.ok(lists >= 8 && lists <= 12, String(lists))
    assert.equal(warnings.length, 2)
    origin.forbidden.clear()
    await clock.advance(125_000)
    assert.equal(watches.message, '')
    assert.deepEqual([...watches.following], EVERYTHING)
    assert.equal(infos.length, 2)
    assert.equal(ownerOf('a'), 'Job/a by owner')
    await stop()
  })

  test('lists again after 410, and continues a watch that ended', async () => {
    const origin = new MemoryOwners()
    origin.put('pods/shop/a', 'Job/a')
    const { ownerOf, watches, stop } = start(origin)
    await clock.advance(5_000)
    origin.put('pods/shop/a', 'Job/b')
    await clock.advance(500)
    origin.isDown = true
    origin.wake()
    await clock.advance(10_000)
    assert.equal(watches.message, '', 'not for a moment')
    origin.put('pods/shop/a', 'Job/c')
    origin.compacted = origin.version
    await clock.advance(25_000)
    assert.equal(watches.message, 'owners of pods, replicasets, jobs are unknown: no response')
    origin.isDown = false
    await clock.advance(125_000)
    assert.equal(ownerOf('a'), 'Job/c by owner')
    assert.equal(watches.message, '')
    await stop()
  })

  test('a watch that was open for long may be interrupted for a moment', async () => {
    const origin = new MemoryOwners()
    const { watches, warnings, stop } = start(origin)
    await clock.advance(60_000)
    origin.isDown = true
    origin.wake()
    await clock.advance(10_000)
    assert.equal(watches.message, '')
    assert.deepEqual(warnings, [])
    assert.deepEqual([...watches.following], EVERYTHING)
    await clock.advance(25_000)
    assert.equal(watches.message, 'owners of pods, replicasets, jobs are unknown: no response')
    await stop()
  })

  test('a watch that ends again and again is not taken for one that follows', async () => {
    const origin = new MemoryOwners()
    origin.watch = async function* (_resource, { onOpen }) {
      onOpen?.()
      yield* []
    }
    const { watches, warnings, infos, stop } = start(origin)
    await clock.advance(200_000)
    assert.deepEqual([...watches.following.values()], [false, false, false])
    assert.match(watches.message, /are unknown: the origin ended the watch immediately$/)
    assert.equal(warnings.length, 3)
    assert.deepEqual(infos, [])
    await stop()
  })

  test('a bug in the origin is repeated later and does not end the run', async () => {
    const origin = new MemoryOwners()
    const { listPage } = origin
    origin.listPage = async () => {
      throw new TypeError('planted')
    }
    const { ownerOf, stop } = start(origin)
    await clock.advance(1_000)
    origin.listPage = listPage
    origin.put('pods/shop/a', 'Job/a')
    await clock.advance(70_000)
    assert.equal(ownerOf('a'), 'Job/a by owner')
    await stop()
  })
})
