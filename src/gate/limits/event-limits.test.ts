import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event } from '../../api/event.ts'
import { StatusError } from '../../api/status.ts'
import { byteLimits, type EventLimit, EventLimits, type EventLimitType } from './event-limits.ts'

const ada = { name: 'ada', groups: [] }
const bob = { name: 'bob', groups: [] }

function event(change: Partial<Event> = {}): Event {
  return {
    metadata: { name: 'web-0.1', namespace: 'default' },
    reportingController: 'kubelet',
    regarding: { kind: 'Pod', namespace: 'default', name: 'web-0' },
    ...change,
  }
}

function limitsOf(...limits: readonly (Partial<EventLimit> & { type: EventLimitType })[]): {
  limits: EventLimits
  clock: { ms: number }
  refused: EventLimitType[]
} {
  const clock = { ms: 0 }
  const refused: EventLimitType[] = []
  return {
    clock,
    refused,
    limits: new EventLimits({
      limits: limits.map((limit) => ({
        unit: 'events' as const,
        rate: 1,
        burst: 2,
        cacheSize: 100,
        ...limit,
      })),
      now: () => clock.ms,
      onRefused: (type) => refused.push(type),
    }),
  }
}

function byteLimitsOf(bytesPerSecond: number): {
  limits: EventLimits
  clock: { ms: number }
  etcd: { room: number }
  refused: EventLimitType[]
} {
  const clock = { ms: 0 }
  const etcd = { room: 1 }
  const refused: EventLimitType[] = []
  const limits = new EventLimits({
    limits: byteLimits(bytesPerSecond),
    room: () => etcd.room,
    now: () => clock.ms,
    onRefused: (type, unit) => unit === 'bytes' && refused.push(type),
  })
  return { limits, clock, etcd, refused }
}

/** Undefined when the write is allowed, else the seconds of Retry-After. */
function take(limits: EventLimits, user = ada, sent = event(), bytes = 1000): number | undefined {
  try {
    limits.take({ user, cluster: 'local', event: sent, bytes })
    return undefined
  } catch (error) {
    assert.ok(error instanceof StatusError)
    assert.equal(error.reason, 'TooManyRequests')
    return error.details?.retryAfterSeconds
  }
}

describe('EventLimits', () => {
  test('a burst is allowed at once, then writes are allowed at the rate', () => {
    const { limits, clock, refused } = limitsOf({ type: 'Server', rate: 2, burst: 3 })
    assert.deepEqual(
      [1, 2, 3, 4].map(() => take(limits)),
      [undefined, undefined, undefined, 1],
    )
    clock.ms = 499
    assert.equal(take(limits), 1)
    clock.ms = 500
    assert.deepEqual([take(limits), take(limits)], [undefined, 1])
    assert.deepEqual(refused, ['Server', 'Server', 'Server'])
  })

  test('a write is allowed after its Retry-After', () => {
    const { limits, clock } = limitsOf({ type: 'User', rate: 1, burst: 1 })
    assert.equal(take(limits), undefined)
    assert.equal(take(limits), 1)
    clock.ms = 1000
    assert.equal(take(limits), undefined)
  })

  test('each namespace, user, and source with its object has a bucket of its own', () => {
    const others: readonly [EventLimitType, typeof ada, Event][] = [
      ['Namespace', ada, event({ metadata: { name: 'web-0.1', namespace: 'other' } })],
      ['User', bob, event()],
      ['SourceAndObject', bob, event({ reportingController: 'scheduler' })],
      ['SourceAndObject', bob, event({ regarding: { kind: 'Pod', name: 'web-1' } })],
      ['SourceAndObject', bob, event({ regarding: { kind: 'Pod', name: '__proto__' } })],
    ]
    for (const [type, user, sent] of others) {
      const { limits } = limitsOf({ type, burst: 1 })
      assert.deepEqual([take(limits), take(limits)], [undefined, 1])
      assert.equal(take(limits, user, sent), undefined, type)
      assert.equal(take(limits, user, sent), 1, type)
    }
  })

  test('namespaces and objects of two clusters have separate buckets, a user has one for all', () => {
    const write = { user: ada, event: event(), bytes: 1 }
    for (const type of ['Namespace', 'SourceAndObject', 'User'] as const) {
      const { limits, refused } = limitsOf({ type, burst: 1 })
      limits.take({ ...write, cluster: 'a' })
      assert.throws(() => limits.take({ ...write, cluster: 'a' }), { code: 429 })
      const elsewhere = (): void => limits.take({ ...write, cluster: 'b' })
      if (type === 'User') assert.throws(elsewhere, { code: 429 })
      else elsewhere()
      assert.deepEqual(refused, type === 'User' ? [type, type] : [type])
    }
  })

  test('an old event counts for its deprecated source', () => {
    const { limits } = limitsOf({ type: 'SourceAndObject', burst: 1 })
    const from = (component: string): Event => ({
      metadata: {},
      deprecatedSource: { component, host: 'node-1' },
    })
    assert.deepEqual(
      ['a', 'a', 'b'].map((component) => take(limits, ada, from(component))),
      [undefined, 1, undefined],
    )
  })

  test('a write that one limit refuses does not count against the others', () => {
    const { limits, clock, refused } = limitsOf(
      { type: 'Server', rate: 1, burst: 3 },
      { type: 'User', rate: 1, burst: 1 },
    )
    assert.deepEqual(
      [take(limits), take(limits), take(limits), take(limits, bob)],
      [undefined, 1, 1, undefined],
    )
    assert.equal(take(limits, { name: 'eve', groups: [] }), undefined)
    assert.equal(take(limits, { name: 'joe', groups: [] }), 1)
    assert.deepEqual(refused, ['User', 'User', 'Server'])
    clock.ms = 0
  })

  test('the least recently used bucket is evicted when there are too many', () => {
    const { limits } = limitsOf({ type: 'User', burst: 1, cacheSize: 2 })
    const names = ['a', 'b', 'a', 'c', 'a', 'b']
    assert.deepEqual(
      names.map((name) => take(limits, { name, groups: [] })),
      [undefined, undefined, 1, undefined, 1, undefined],
    )
  })

  test('long names that differ only at the end have different buckets', () => {
    const { limits } = limitsOf({ type: 'User', burst: 1 })
    const long = 'x'.repeat(10_000)
    assert.deepEqual(
      [`${long}1`, `${long}2`, `${long}1`].map((name) => take(limits, { name, groups: [] })),
      [undefined, undefined, 1],
    )
  })

  test('new limits hold at once, and limits in bytes stay', () => {
    const limits = new EventLimits({ limits: byteLimits(100), now: () => 0 })
    const server = { type: 'Server', unit: 'events', rate: 1, burst: 1, cacheSize: 1 } as const
    limits.replace([server])
    assert.deepEqual([take(limits), take(limits)], [undefined, 1])
    limits.replace([])
    assert.equal(take(limits), undefined)
    assert.equal(take(limits, ada, event(), 25_600), 20)
  })

  test('a write counts the bytes of the whole event for its user', () => {
    const { limits, clock, refused } = byteLimitsOf(1000)
    assert.equal(take(limits, ada, event(), 256_000), undefined)
    assert.equal(take(limits, ada, event(), 1500), 2)
    const elsewhere = event({ metadata: { name: 'web-0.1', namespace: 'other' } })
    assert.equal(take(limits, ada, elsewhere, 1500), 2)
    assert.deepEqual(refused, ['User', 'User'])
    clock.ms = 2000
    assert.equal(take(limits, ada, event(), 1500), undefined)
  })

  test('one user that writes all it may does not exhaust the limit of its namespace', () => {
    const { limits, clock, etcd, refused } = byteLimitsOf(1000)
    assert.equal(take(limits, ada, event(), 256_000), undefined)
    for (let second = 1; second <= 600; second++) {
      clock.ms = second * 1000
      assert.equal(take(limits, ada, event(), 1000), undefined)
      assert.equal(take(limits, bob, event(), 1000), undefined)
    }
    etcd.room = 0.2
    assert.equal(take(limits, bob, event(), 1000), undefined, 'etcd fills up')
    assert.deepEqual(refused, [])
  })

  test('many users together reach the limit of a namespace, and of no other one', () => {
    const { limits, refused } = byteLimitsOf(1000)
    const users = Array.from({ length: 9 }, (_, index) => ({ name: `u${index}`, groups: [] }))
    const waits = users.map((user) => take(limits, user, event(), 256_000))
    assert.deepEqual(waits, [...Array(8).fill(undefined), 32])
    assert.deepEqual(refused, ['Namespace'])
    const elsewhere = event({ metadata: { name: 'web-0.1', namespace: 'other' } })
    assert.equal(take(limits, users[8], elsewhere, 256_000), undefined)
  })

  test('bytes are charged to the sender, whichever user it impersonates', () => {
    const { limits } = byteLimitsOf(1000)
    const write = { sender: bob, cluster: 'local', event: event(), bytes: 200_000 }
    limits.take({ ...write, user: ada })
    assert.throws(() => limits.take({ ...write, user: { name: 'eve', groups: [] } }), {
      message: /^this user writes too many bytes, please/,
    })
  })

  test('users that wrote most are limited first while etcd fills up', () => {
    const { limits, etcd, clock } = byteLimitsOf(1000)
    const namespaced = (namespace: string): Event => event({ metadata: { name: 'a', namespace } })
    const writes = (who: typeof ada, bytes: number): number | undefined =>
      take(limits, who, namespaced(who.name), bytes)
    assert.equal(writes(ada, 100_000), undefined)
    assert.equal(writes(bob, 1000), undefined)
    etcd.room = 0.3
    assert.equal(writes(ada, 1000), 60, 'Retry-After is never longer than a minute')
    assert.equal(writes(bob, 1000), undefined)
    clock.ms = 60_000
    assert.equal(writes(ada, 1000), 21, 'the bucket empties more slowly, too')
    etcd.room = 0
    assert.equal(writes(bob, 1), 60)
    etcd.room = 1
    assert.equal(writes(ada, 1000), undefined)
  })

  test('an event larger than the burst is allowed when the bucket is empty', () => {
    const { limits, clock } = byteLimitsOf(1)
    assert.equal(take(limits, ada, event(), 1000), undefined)
    assert.equal(take(limits, ada, event(), 1), 60)
    clock.ms = 1_000_000
    assert.equal(take(limits, ada, event(), 1000), undefined)
  })

  test('no more writes are allowed than burst and rate, and a write is allowed after Retry-After', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 100 }),
        (qps, burst, gapsMs) => {
          const { limits, clock } = limitsOf({ type: 'Server', rate: qps, burst })
          let passed = 0
          for (const gap of gapsMs) {
            clock.ms += gap
            const waitSeconds = take(limits)
            if (waitSeconds === undefined) passed += 1
            else {
              clock.ms += waitSeconds * 1000
              assert.equal(take(limits), undefined)
              passed += 1
            }
            assert.ok(passed <= burst + (clock.ms / 1000) * qps + 1e-6)
          }
        },
      ),
    )
  })
})
