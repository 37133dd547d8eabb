import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Event } from '../../api/event.ts'
import {
  byteLimits,
  type EventLimit,
  EventLimits,
  type EventLimitType,
  type EventWrite,
  type RateExceeded,
} from './event-limits.ts'

const ada: string = 'ada'
const bob: string = 'bob'

function event(change: Partial<Event> = {}): Event {
  return {
    metadata: { name: 'web-0.1', namespace: 'default' },
    reportingController: 'kubelet',
    regarding: { kind: 'Pod', namespace: 'default', name: 'web-0' },
    ...change,
  }
}

/** Limits on a clock that the test sets, which record the types that refuse. */
class TestedLimits extends EventLimits {
  readonly clock: { ms: number }
  readonly etcd: { headroom: number }
  readonly refused: string[] = []

  constructor(limits: readonly EventLimit[]) {
    const clock = { ms: 0 }
    const etcd = { headroom: 1 }
    super({ limits, now: () => clock.ms, headroom: () => etcd.headroom })
    this.clock = clock
    this.etcd = etcd
  }

  override take(write: EventWrite): RateExceeded | undefined {
    const exceeded = super.take(write)
    if (exceeded !== undefined) this.refused.push(exceeded.type)
    return exceeded
  }
}

interface Tested {
  readonly limits: TestedLimits
  readonly clock: { ms: number }
  readonly etcd: { headroom: number }
  readonly refused: readonly string[]
}

function tested(limits: readonly EventLimit[]): Tested {
  const made = new TestedLimits(limits)
  return { limits: made, clock: made.clock, etcd: made.etcd, refused: made.refused }
}

function limitsOf(...limits: readonly (Partial<EventLimit> & { type: EventLimitType })[]): Tested {
  const common = { unit: 'events' as const, rate: 1, burst: 2, cacheSize: 100 }
  return tested(limits.map((limit) => ({ ...common, ...limit })))
}

function byteLimitsOf(bytesPerSecond: number): Tested {
  return tested(byteLimits(['User', 'Namespace'], bytesPerSecond))
}

/** Undefined when the write is allowed, otherwise the whole seconds to wait. */
function take(
  limits: EventLimits,
  account = ada,
  sent = event(),
  bytes = 1000,
): number | undefined {
  const exceeded = limits.take({ account, cluster: 'local', event: sent, bytes })
  return exceeded && Math.ceil(exceeded.waitMs / 1000)
}

describe('EventLimits', () => {
  test('allows a burst at once, then writes at the rate', () => {
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

  test('allows a write after its Retry-After', () => {
    const { limits, clock } = limitsOf({ type: 'User', rate: 1, burst: 1 })
    assert.equal(take(limits), undefined)
    assert.equal(take(limits), 1)
    clock.ms = 1000
    assert.equal(take(limits), undefined)
  })

  test('has separate buckets for each namespace, user, and source with its object', () => {
    const others: readonly [EventLimitType, string, Event][] = [
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

  test('has separate buckets for namespaces and objects of two clusters, and one per user for all', () => {
    const write = { account: ada, event: event(), bytes: 1 }
    for (const type of ['Namespace', 'SourceAndObject', 'User'] as const) {
      const { limits, refused } = limitsOf({ type, burst: 1 })
      limits.take({ ...write, cluster: 'a' })
      limits.take({ ...write, cluster: 'a' })
      limits.take({ ...write, cluster: 'b' })
      assert.deepEqual(refused, type === 'User' ? [type, type] : [type])
    }
  })

  test('counts an old event for its deprecated source', () => {
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

  test('does not count a write that one limit rejects against the others', () => {
    const { limits, clock, refused } = limitsOf(
      { type: 'Server', rate: 1, burst: 3 },
      { type: 'User', rate: 1, burst: 1 },
    )
    assert.deepEqual(
      [take(limits), take(limits), take(limits), take(limits, bob)],
      [undefined, 1, 1, undefined],
    )
    assert.equal(take(limits, 'eve'), undefined)
    assert.equal(take(limits, 'joe'), 1)
    assert.deepEqual(refused, ['User', 'User', 'Server'])
    clock.ms = 0
  })

  test('evicts the least recently used bucket when there are too many', () => {
    const { limits } = limitsOf({ type: 'User', burst: 1, cacheSize: 2 })
    const names = ['a', 'b', 'a', 'c', 'a', 'b']
    assert.deepEqual(
      names.map((name) => take(limits, name)),
      [undefined, undefined, 1, undefined, 1, undefined],
    )
  })

  test('has different buckets for long names that differ only at the end', () => {
    const { limits } = limitsOf({ type: 'User', burst: 1 })
    const long = 'x'.repeat(10_000)
    assert.deepEqual(
      [`${long}1`, `${long}2`, `${long}1`].map((name) => take(limits, name)),
      [undefined, undefined, 1],
    )
  })

  test('applies new limits at once, and retains limits in bytes', () => {
    const limits = new EventLimits({ limits: byteLimits(['User', 'Namespace'], 100), now: () => 0 })
    const server = { type: 'Server', unit: 'events', rate: 1, burst: 1, cacheSize: 1 } as const
    limits.replace([server])
    assert.deepEqual([take(limits), take(limits)], [undefined, 1])
    limits.replace([])
    assert.equal(take(limits), undefined)
    assert.equal(take(limits, ada, event(), 25_600), 20)
  })

  test('counts the bytes of the whole event for its user', () => {
    const { limits, clock, refused } = byteLimitsOf(1000)
    assert.equal(take(limits, ada, event(), 256_000), undefined)
    assert.equal(take(limits, ada, event(), 1500), 2)
    const elsewhere = event({ metadata: { name: 'web-0.1', namespace: 'other' } })
    assert.equal(take(limits, ada, elsewhere, 1500), 2)
    assert.deepEqual(refused, ['User', 'User'])
    clock.ms = 2000
    assert.equal(take(limits, ada, event(), 1500), undefined)
  })

  test('does not let one user exhaust the limit of its namespace', () => {
    const { limits, clock, etcd, refused } = byteLimitsOf(1000)
    assert.equal(take(limits, ada, event(), 256_000), undefined)
    for (let second = 1; second <= 600; second++) {
      clock.ms = second * 1000
      assert.equal(take(limits, ada, event(), 1000), undefined)
      assert.equal(take(limits, bob, event(), 1000), undefined)
    }
    etcd.headroom = 0.2
    assert.equal(take(limits, bob, event(), 1000), undefined, 'etcd fills up')
    assert.deepEqual(refused, [])
  })

  test('lets many users together reach the limit of their namespace, and of no other', () => {
    const { limits, refused } = byteLimitsOf(1000)
    const users = Array.from({ length: 9 }, (_, index) => `u${index}`)
    const waits = users.map((user) => take(limits, user, event(), 256_000))
    assert.deepEqual(waits, [...Array(8).fill(undefined), 32])
    assert.deepEqual(refused, ['Namespace'])
    const elsewhere = event({ metadata: { name: 'web-0.1', namespace: 'other' } })
    assert.equal(take(limits, users[8], elsewhere, 256_000), undefined)
  })

  test('charges bytes to the sender, whichever user it impersonates', () => {
    const { limits } = byteLimitsOf(1000)
    const write = { payer: bob, cluster: 'local', event: event(), bytes: 200_000 }
    assert.equal(limits.take({ ...write, account: ada }), undefined)
    assert.equal(limits.take({ ...write, account: 'eve' })?.type, 'User')
  })

  test('limits a burst to what one user may store', () => {
    const { limits } = tested(byteLimits(['User', 'Cluster'], 1000, 10_000))
    assert.equal(take(limits, ada, event(), 10_000), undefined)
    assert.equal(take(limits, ada, event(), 1000), 1)
  })

  test('limits users that wrote most first while etcd fills up', () => {
    const { limits, etcd, clock } = byteLimitsOf(1000)
    const namespaced = (namespace: string): Event => event({ metadata: { name: 'a', namespace } })
    const writes = (who: string, bytes: number): number | undefined =>
      take(limits, who, namespaced(who), bytes)
    assert.equal(writes(ada, 100_000), undefined)
    assert.equal(writes(bob, 1000), undefined)
    etcd.headroom = 0.3
    assert.equal(writes(ada, 1000), 81, 'the bucket is fuller than the reduced burst')
    assert.equal(writes(bob, 1000), undefined)
    clock.ms = 60_000
    assert.equal(writes(ada, 1000), 21, 'the bucket empties more slowly, too')
    etcd.headroom = 0
    assert.equal(writes(bob, 1), 60)
    etcd.headroom = 1
    assert.equal(writes(ada, 1000), undefined)
  })

  test('allows an event larger than the burst when the bucket is empty', () => {
    const { limits, clock } = byteLimitsOf(1)
    assert.equal(take(limits, ada, event(), 1000), undefined)
    assert.equal(take(limits, ada, event(), 1), 745)
    clock.ms = 1_000_000
    assert.equal(take(limits, ada, event(), 1000), undefined)
  })

  test('allows no more writes than burst and rate, and a write after Retry-After', () => {
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
