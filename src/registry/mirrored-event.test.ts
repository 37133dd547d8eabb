import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '../api/event.ts'
import { StorageError } from '../storage/errors.ts'
import { pathOf } from '../storage/event-scope.ts'
import { PlainStorage } from '../storage/plain-storage.fixture.ts'
import { type AdmittedWrite, MirrorThrottled } from './admission/write-admission.ts'
import { type MirrorTarget, MirrorWriter, type WriteResult } from './mirrored-event.ts'
import {
  compareOriginVersions,
  compareResourceVersions,
  heldBy,
  LaterEpoch,
  type OriginEvent,
} from './origin-version.ts'

const now = Date.UTC(2026, 5, 1, 12)
const fence = { key: '/t/leader', revision: 1 }
const hourMs = 3_600_000

function at(msAgo: number): string {
  return `${new Date(now - msAgo).toISOString().slice(0, 19)}Z`
}

interface Made {
  readonly uid?: string
  readonly name?: string
  readonly note?: string
  readonly msAgo?: number
  readonly annotations?: Readonly<Record<string, string>>
}

function made(resourceVersion: string, options: Made = {}): OriginEvent {
  const { uid = 'u1', name = 'e', note = resourceVersion, msAgo = 0, annotations } = options
  const event: Event = {
    metadata: {
      name,
      namespace: 'a',
      uid,
      resourceVersion,
      creationTimestamp: at(msAgo),
      ...(annotations && { annotations }),
    },
    note,
    // Not valid by today's rules, and accepted by the origin long ago.
    type: 'Odd',
  }
  return { event, resourceVersion, bytes: 100 }
}

function start(lifetime: number | 'never' = 'never', recalls = true) {
  const storage = new PlainStorage()
  const writer = new MirrorWriter({
    storage,
    recall: (key) => (recalls ? storage.events.get(pathOf(key)) : undefined),
    lifetimeOf: () => lifetime,
    now: () => now,
  })
  const target = (epoch = 0): MirrorTarget => ({ cluster: 'c', epoch, fence })
  return {
    storage,
    writer,
    put: (item: OriginEvent, epoch = 0, isListed = false) =>
      writer.put(target(epoch), item, { isListed }),
    remove: (item: OriginEvent, epoch = 0) =>
      writer.delete(target(epoch), item, { originTtlMs: hourMs }),
    target,
    stored: (name = 'e') => {
      const found = storage.events.get(pathOf({ cluster: 'c', namespace: 'a', name }))
      return found && (JSON.parse(found.body.toString()) as Event)
    },
  }
}

test('compares resourceVersions as numbers of any length', () => {
  assert.ok(compareResourceVersions('9', '10') < 0)
  assert.ok(compareResourceVersions('90071992547409931', '90071992547409930') > 0)
  assert.equal(compareResourceVersions('123', '123'), 0)
})

test('stores an event as the origin has it, with the version in an annotation', async () => {
  const { put, stored } = start()
  assert.equal(await put(made('17', { annotations: { a: 'b' } })), 'stored')
  assert.deepEqual(stored()?.metadata, {
    name: 'e',
    namespace: 'a',
    uid: 'u1',
    creationTimestamp: at(0),
    annotations: { a: 'b', 'tidings.dev/origin-resource-version': '17' },
  })
  assert.equal(stored()?.type, 'Odd')
})

test('replaces the annotations of an origin that is a mirror itself', async () => {
  const { put, stored } = start()
  const annotations = {
    'tidings.dev/origin-resource-version': '900',
    'tidings.dev/origin-epoch': '4',
  }
  await put(made('17', { annotations }))
  assert.deepEqual(stored()?.metadata.annotations, { 'tidings.dev/origin-resource-version': '17' })
  await put(made('18', { annotations }), 2)
  assert.deepEqual(stored()?.metadata.annotations, {
    'tidings.dev/origin-epoch': '2',
    'tidings.dev/origin-resource-version': '18',
  })
})

const cases: readonly [string, readonly [OriginEvent, number][], WriteResult, string][] = [
  [
    'an equal version is skipped',
    [
      [made('5'), 0],
      [made('5', { note: 'x' }), 0],
    ],
    'equal',
    '5',
  ],
  [
    'an older version is skipped',
    [
      [made('10'), 0],
      [made('9'), 0],
    ],
    'older',
    '10',
  ],
  [
    'a newer version replaces',
    [
      [made('9'), 0],
      [made('10'), 0],
    ],
    'stored',
    '10',
  ],
  [
    'a new uid replaces',
    [
      [made('9'), 0],
      [made('10', { uid: 'u2' }), 0],
    ],
    'stored',
    '10',
  ],
  [
    'an older uid is skipped',
    [
      [made('10', { uid: 'u2' }), 0],
      [made('9'), 0],
    ],
    'older',
    '10',
  ],
  [
    'a later epoch replaces',
    [
      [made('90'), 0],
      [made('10'), 1],
    ],
    'stored',
    '10',
  ],
  [
    'a later epoch with another uid replaces',
    [
      [made('90'), 0],
      [made('10', { uid: 'u2' }), 1],
    ],
    'stored',
    '10',
  ],
  [
    'a later epoch without a change is skipped',
    [
      [made('90'), 0],
      [made('90'), 1],
    ],
    'equal',
    '90',
  ],
  [
    'a later epoch with the same version of another state replaces',
    [
      [made('90'), 0],
      [made('90', { note: 'other' }), 1],
    ],
    'stored',
    'other',
  ],
]
for (const [title, puts, result, note] of cases) {
  for (const isListed of [false, true]) {
    test(`${title}${isListed ? ', in a list' : ''}`, async () => {
      const { put, stored } = start()
      const results: WriteResult[] = []
      for (const [item, epoch] of puts) results.push(await put(item, epoch, isListed))
      assert.deepEqual([results.at(-1), stored()?.note], [result, note])
    })
  }
}

test('replaces an event that no mirror has written', async () => {
  const { put, storage, stored } = start()
  const body = Buffer.from('{"metadata":{"name":"e","namespace":"a","uid":"u1"},"note":"by hand"}')
  await storage.update({ cluster: 'c', namespace: 'a', name: 'e' }, () => body)
  assert.equal(await put(made('5')), 'stored')
  assert.equal(stored()?.note, '5')
})

test('writes nothing in an earlier epoch, and reports the later one', async () => {
  const { put, stored } = start()
  await put(made('10'), 2)
  for (const isListed of [false, true]) {
    await assert.rejects(put(made('90'), 0, isListed), (error) => {
      return error instanceof LaterEpoch && error.epoch === 2
    })
  }
  assert.equal(stored()?.note, '10')
})

test('rejects a fenced write', async () => {
  const { put, storage } = start()
  storage.leader = 2
  await assert.rejects(put(made('5')), (error) => (error as StorageError).kind === 'fenced')
  assert.equal(storage.events.size, 0)
})

test('skips a listed event as expired only when it is older than retention and not stored', async () => {
  const { put, storage } = start(hourMs)
  assert.equal(await put(made('5', { msAgo: 2 * hourMs }), 0, true), 'expired')
  assert.equal(await put(made('5', { msAgo: hourMs / 2 }), 0, true), 'stored')
  assert.equal(await put(made('6', { msAgo: 2 * hourMs }), 0, true), 'stored')
  storage.events.clear()
  assert.equal(await put(made('7', { msAgo: 2 * hourMs })), 'stored', 'a watch is not filtered')
})

test('drops events that can never be stored, with a reason', async () => {
  const { put, storage } = start()
  assert.equal(await put(made('x')), 'invalid')
  assert.equal(await put(made('5', { name: 'a/b' })), 'invalid')
  assert.equal(await put(made('5', { note: '<'.repeat(600_000) })), 'too-large')
  const failing = (kind: StorageError['kind']) => async () => {
    throw new StorageError({ kind, message: kind })
  }
  for (const [kind, result] of [
    ['too-large', 'too-large'],
    ['corrupt', 'unreadable'],
    ['foreign', 'unreadable'],
  ] as const) {
    storage.before = failing(kind)
    assert.equal(await put(made('5')), result)
  }
  for (const kind of ['unavailable', 'timeout', 'overloaded', 'conflict'] as const) {
    storage.before = failing(kind)
    await assert.rejects(put(made('5')), (error) => (error as StorageError).kind === kind)
  }
})

test('deletes only an event with the same uid that is not newer and too young to have expired', async () => {
  const { put, remove, stored } = start()
  assert.equal(await remove(made('9')), 'absent')
  await put(made('10'))
  assert.equal(await remove(made('9')), 'older')
  assert.equal(await remove(made('11', { uid: 'u2' })), 'older')
  assert.equal(await remove(made('11', { msAgo: hourMs - 60_000 })), 'kept')
  assert.notEqual(stored(), undefined)
  assert.equal(await remove(made('11', { msAgo: hourMs / 2 })), 'removed')
  assert.equal(stored(), undefined)
})

test('deletes an event missing from a list only when it is young and not newer than the list', async () => {
  const { put, storage, writer, target } = start()
  const missing = (listed: string, epoch = 0) => {
    const [stored] = storage.events.values()
    assert.ok(stored !== undefined)
    return writer.deleteMissing(target(epoch), stored, { listed, originTtlMs: hourMs })
  }
  await put(made('10', { msAgo: hourMs }))
  assert.equal(await missing('20'), 'kept')
  await put(made('11'))
  assert.equal(await missing('10'), 'older')
  const [seen] = storage.events.values()
  await put(made('12'))
  assert.ok(seen !== undefined)
  const late = writer.deleteMissing(target(), seen, { listed: '20', originTtlMs: hourMs })
  assert.equal(await late, 'older')
  assert.equal(await missing('12'), 'removed')
})

/** A small generator with a seed, so that a failure can be repeated. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

test('stores the newest delivered version in any order of delivery, and never goes back', async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = generator(seed)
    const { put, storage, stored } = start('never', seed % 2 === 0)
    let last = 95
    const states = Array.from({ length: 12 }, (_, index) => {
      // The last three are of an origin that was restored: their numbers begin again.
      last = (index === 9 ? 95 : last) + 1 + Math.floor(random() * 3)
      const item = made(String(last), { uid: `u${Math.floor(index / 4)}` })
      return { item, epoch: index < 9 ? 0 : 1 }
    })
    const deliveries = Array.from({ length: 20 }, () => states[Math.floor(random() * 12)])
    let newest: { epoch: number; resourceVersion: string } | undefined
    for (const delivery of deliveries) {
      assert.ok(delivery !== undefined)
      const { item, epoch } = delivery
      await put(item, epoch, random() < 0.5).catch((error) => {
        assert.ok(error instanceof LaterEpoch)
      })
      const version = { epoch, resourceVersion: item.resourceVersion }
      if (newest === undefined || compareOriginVersions(version, newest) > 0) newest = version
      assert.equal(stored()?.note, newest.resourceVersion, `seed ${seed}`)
    }
    const versions = storage.history.map(
      ({ stored: written }) => written && heldBy(written).version,
    )
    versions.reduce((before, version) => {
      assert.ok(version !== undefined)
      assert.ok(before === undefined || compareOriginVersions(before, version) < 0, `seed ${seed}`)
      return version
    }, undefined)
  }
})

test('stores an event that is too large without annotations and the end of its note', async () => {
  const eventBytesMax = 1_000
  const storage = new PlainStorage()
  const writer = new MirrorWriter({
    storage,
    recall: (key) => storage.events.get(pathOf(key)),
    lifetimeOf: () => 'never',
    eventBytesMax,
  })
  const target = { cluster: 'c', epoch: 0, fence }
  const put = (item: OriginEvent) => writer.put(target, item, { isListed: false })
  const bodyOf = (name: string): Buffer =>
    storage.events.get(pathOf({ cluster: 'c', namespace: 'a', name }))?.body ?? assert.fail(name)
  const annotated = made('7', { name: 'annotated', annotations: { a: 'x'.repeat(2_000) } })
  assert.equal(await put(annotated), 'truncated')
  const { metadata, note } = JSON.parse(bodyOf('annotated').toString()) as Event
  assert.match(metadata.annotations?.['tidings.dev/truncated-from-bytes'] ?? '', /^2\d{3}$/)
  assert.equal(metadata.annotations?.['tidings.dev/origin-resource-version'], '7')
  assert.deepEqual([metadata.annotations?.['a'], note], [undefined, '7'])
  for (const [name, text] of [
    ['plain', 'y'.repeat(5_000)],
    ['wide', '😀'.repeat(2_000)],
    ['quoted', '"\n'.repeat(3_000)],
    ['escaped', '<'.repeat(300_000)],
    ['mixed', `${'y'.repeat(200)}${'<😀'.repeat(2_000)}`],
  ] as const) {
    assert.equal(await put(made('8', { name, note: text })), 'truncated')
    const body = bodyOf(name)
    assert.ok(body.length <= eventBytesMax, `${name}: ${body.length}`)
    assert.ok(
      body.length > eventBytesMax - 16,
      `${name}: no more than needed is cut, ${body.length}`,
    )
    const kept = (JSON.parse(body.toString()) as Event).note ?? ''
    assert.ok(kept.isWellFormed() && kept.endsWith('…') && text.startsWith(kept.slice(0, -1)))
  }
  assert.equal(await put(made('8', { name: 'plain', note: 'z'.repeat(5_000) })), 'equal')
  const immense = made('9', { name: 'immense' })
  const type = 'T'.repeat(2_000)
  const kept = await put({ ...immense, event: { ...immense.event, type } })
  assert.equal(kept, 'too-large', 'what cannot be cut is dropped')
})

test('makes no write before it is admitted, and charges it once', async () => {
  const storage = new PlainStorage()
  const charged: number[] = []
  let isFull = true
  const admission = {
    admitMirrored: ({ growth }: AdmittedWrite) => {
      if (isFull) throw new MirrorThrottled('no space', 10)
      charged.push(growth)
    },
  }
  const update = storage.update.bind(storage)
  let [updates, failures] = [0, 1]
  storage.update = async (key, change, options) => {
    updates++
    if (failures-- <= 0) return update(key, change, options)
    change(undefined)
    throw new StorageError({ kind: 'unavailable', message: 'down' })
  }
  const writer = new MirrorWriter({
    storage,
    recall: () => undefined,
    lifetimeOf: () => 'never',
    admission,
  })
  const item = made('5')
  const put = () => writer.put({ cluster: 'c', epoch: 0, fence }, item, { isListed: false })
  for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(put(), MirrorThrottled)
  assert.equal(updates, 0, 'an update that throws is repeated on a state that is read from etcd')
  isFull = false
  await assert.rejects(put(), { kind: 'unavailable' })
  assert.equal(await put(), 'stored')
  assert.equal(charged.length, 1)
  isFull = true
  const old = made('6', { name: 'old', msAgo: hourMs })
  const expiring = new MirrorWriter({
    storage,
    recall: () => undefined,
    lifetimeOf: () => hourMs / 2,
    admission,
    now: () => now,
  })
  const skipped = await expiring.put({ cluster: 'c', epoch: 0, fence }, old, { isListed: true })
  assert.equal(skipped, 'expired', 'what is not stored need not be admitted')
})
