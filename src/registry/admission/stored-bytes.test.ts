import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { StoredSize } from '../../storage/stored-sizes.ts'
import { StoredBytes, type Storing, USER_WEIGHT } from './stored-bytes.ts'

const BUDGET = 1_000_000
const LIFETIME_MS = 60_000

interface Live {
  readonly namespace: string
  readonly bytes: number
  readonly expiresAt: number
}

interface Model {
  /** How long a write is not in `usedBytes` and sizes; undefined: they count it at once. */
  readonly lagMs?: number
  readonly hasSizes?: boolean
}

/** A store whose events expire, behind the budget under test. */
class ModelStore {
  now = 0
  #live: Live[] = []
  readonly #lagMs: number | undefined
  readonly budget: StoredBytes

  constructor({ lagMs, hasSizes = true }: Model = {}) {
    this.#lagMs = lagMs
    this.budget = new StoredBytes({
      resources: [
        {
          name: 'memory',
          budgetBytes: () => BUDGET,
          usedBytes: () => this.#bytesOf(this.#seen),
          countsWrites: lagMs === undefined,
        },
      ],
      sizes: hasSizes
        ? { of: (cluster, namespace) => this.#sizeOf(cluster, namespace) }
        : undefined,
      now: () => this.now,
    })
  }
  get usedBytes(): number {
    this.#live = this.#live.filter(({ expiresAt }) => expiresAt > this.now)
    return this.#bytesOf(this.#live)
  }

  get freeBytes(): number {
    return BUDGET - this.usedBytes
  }

  write(account: string, bytes: number, namespace: string = account): boolean {
    const storing: Storing = { cluster: 'c', account, namespace }
    if (this.budget.exceeded(storing, bytes) !== undefined) return false
    this.budget.store(storing, bytes, LIFETIME_MS)
    this.#live.push({ namespace, bytes, expiresAt: this.now + LIFETIME_MS })
    return true
  }

  /** Writes until it is refused. */
  fill(account: string, bytes: number, namespace?: string): number {
    let count = 0
    while (this.write(account, bytes, namespace)) count++
    return count * bytes
  }

  get #seen(): readonly Live[] {
    const writtenBy = this.now - (this.#lagMs ?? 0)
    return this.#live.filter(
      ({ expiresAt }) => expiresAt > this.now && expiresAt - LIFETIME_MS <= writtenBy,
    )
  }

  #sizeOf(cluster: string, namespace: string | undefined): StoredSize {
    const bytes = this.#bytesOf(this.#seen.filter((live) => live.namespace === namespace))
    return { cluster, namespace, events: 0, bytes }
  }

  #bytesOf(live: readonly Live[]): number {
    return live.reduce((sum, { bytes }) => sum + bytes, 0)
  }
}

describe('StoredBytes', () => {
  test('one user alone takes half of the budget', () => {
    const store = new ModelStore()
    const held = store.fill('ada', 1_000)
    assert.ok(held > 0.49 * BUDGET && held <= 0.5 * BUDGET, String(held))
  })

  test('many users of a namespace leave space for other namespaces', () => {
    const store = new ModelStore()
    for (let user = 0; user < 50; user++) store.fill(`ada-${user}`, 1_000, 'a')
    assert.ok(store.freeBytes > 0.2 * BUDGET, String(store.freeBytes))
    assert.ok(store.fill('bob', 1_000, 'b') > 0.03 * BUDGET)
  })

  test('a user that stores little is served beside users that store all they may', () => {
    const store = new ModelStore()
    store.fill('ada', 10_000, 'a')
    store.fill('eve', 10_000, 'a')
    for (let count = 0; count < 50; count++) assert.ok(store.write('bob', 1_000, 'a'))
  })

  test('a write counts until its event has expired, and not much longer', () => {
    const store = new ModelStore()
    store.fill('ada', 1_000)
    store.now = LIFETIME_MS * 0.99
    assert.equal(store.write('ada', 1_000), false)
    store.now = LIFETIME_MS * 1.26
    assert.equal(store.write('ada', 1_000), true)
  })

  test('a tenant never counts for more than is stored', () => {
    const store = new ModelStore()
    const rewritten: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    for (let count = 0; count < 10; count++) store.budget.store(rewritten, BUDGET, LIFETIME_MS)
    assert.equal(store.budget.exceeded(rewritten, 1_000), undefined)
  })

  test('a change that makes nothing larger is never refused', () => {
    const store = new ModelStore()
    store.fill('ada', 1_000)
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'ada' }
    assert.equal(store.budget.exceeded(storing, 0), undefined)
    assert.equal(store.budget.exceeded(storing, -5), undefined)
  })

  test('nothing may be stored when nothing is free', () => {
    const budget = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => BUDGET, usedBytes: () => BUDGET }],
      now: () => 0,
    })
    const exceeded = budget.exceeded({ cluster: 'c' }, 1)
    assert.deepEqual([exceeded?.type, exceeded?.isExhausted], ['Cluster', true])
  })

  test('writes that memory does not have yet are counted', () => {
    let now = 0
    const budget = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => BUDGET, usedBytes: () => 0 }],
      now: () => now,
    })
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    budget.store(storing, 0.6 * BUDGET, LIFETIME_MS)
    assert.equal(budget.exceeded(storing, 1)?.type, 'User')
    now = 2_000
    assert.equal(budget.exceeded(storing, 1), undefined)
  })

  test('writes stay in flight while memory does not follow the store', () => {
    let now = 0
    let silentMs = 0
    const budget = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => BUDGET, usedBytes: () => 0 }],
      silentMs: () => silentMs,
      now: () => now,
    })
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    budget.store(storing, 0.6 * BUDGET, LIFETIME_MS)
    now = 20_000
    silentMs = 20_000
    assert.equal(budget.exceeded(storing, 1)?.type, 'User')
    silentMs = 0
    assert.equal(budget.exceeded(storing, 1), undefined)
  })

  test('a namespace counts for what it is measured to hold, and for what is in flight', () => {
    let now = 0
    let measured = 0
    const budget = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => BUDGET, usedBytes: () => 0.7 * BUDGET }],
      sizes: {
        of: (cluster, namespace) => ({ cluster, namespace, events: 0, bytes: measured }),
      },
      now: () => now,
    })
    const mirror: Storing = { cluster: 'c' }
    // All of it was written here, and is gone: it was evicted or deleted.
    for (let count = 0; count < 100; count++) budget.store(mirror, 0.1 * BUDGET, LIFETIME_MS)
    now = 5_000
    assert.equal(budget.exceeded(mirror, 1_000), undefined)
    measured = 0.7 * BUDGET
    assert.equal(budget.exceeded(mirror, 100_000)?.type, 'Cluster')
    measured = 0
    budget.store(mirror, 0.1 * BUDGET, LIFETIME_MS)
    budget.store(mirror, 0.1 * BUDGET, LIFETIME_MS)
    assert.equal(budget.exceeded(mirror, 1_000)?.type, 'Cluster', 'in flight')
  })

  test('a steady writer is not locked out, however long events live', () => {
    let now = 0
    const mib = 1024 * 1024
    const budget = new StoredBytes({
      // Evictions keep what is used the same.
      resources: [{ name: 'memory', budgetBytes: () => 147 * mib, usedBytes: () => 100 * mib }],
      sizes: {
        of: (cluster, namespace) => ({ cluster, namespace, events: 0, bytes: 50 * mib }),
      },
      now: () => now,
    })
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    for (let second = 0; second < 2 * 86_400; second += 10) {
      now = second * 1_000
      assert.equal(budget.exceeded(storing, 10_240), undefined, `after ${second} s`)
      budget.store(storing, 10_240, Number.POSITIVE_INFINITY)
    }
  })

  test('each write counts for the lifetime of its own event', () => {
    const store = new ModelStore()
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    const others: Storing = { cluster: 'c', account: 'bob', namespace: 'b' }
    store.fill('eve', 1_000)
    store.budget.store(storing, 0.45 * BUDGET, 20_000)
    store.budget.store(others, 0.45 * BUDGET, 60_000)
    assert.equal(store.budget.exceeded(storing, 30_000)?.type, 'User')
    store.now = 26_000
    assert.equal(store.budget.exceeded(storing, 30_000), undefined)
    assert.equal(store.budget.exceeded(others, 30_000)?.type, 'User')
  })

  test('a refunded write does not count', () => {
    const store = new ModelStore({ lagMs: 500 })
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    const refund = store.budget.store(storing, 0.6 * BUDGET, LIFETIME_MS)
    assert.equal(store.budget.exceeded(storing, 1_000)?.type, 'User')
    refund()
    assert.equal(store.budget.exceeded(storing, 1_000), undefined)
  })

  test('what does not fit is refused as too much, and as full only when nothing is free', () => {
    const store = new ModelStore()
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    assert.equal(store.budget.exceeded(storing, BUDGET)?.isExhausted, false)
    const none = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => 0, usedBytes: () => 0 }],
      now: () => 0,
    })
    assert.equal(none.exceeded(storing, 1)?.isExhausted, true)
  })

  test('a part stays free while memory lags behind, with and without sizes', () => {
    const step = fc.record({
      tenant: fc.nat(7),
      bytes: fc.integer({ min: 1, max: BUDGET }),
      waitMs: fc.nat(2_000),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, hasSizes) => {
        const store = new ModelStore({ lagMs: 700, hasSizes })
        for (const { tenant, bytes, waitMs } of steps) {
          store.now += waitMs
          store.write(`greedy-${tenant}`, bytes)
          assert.ok(store.freeBytes >= BUDGET / (USER_WEIGHT * 8 + 1))
        }
      }),
      { numRuns: 200 },
    )
  })

  test('a tenant below its share is never refused, whatever others store, in any order', () => {
    const step = fc.record({
      tenant: fc.nat(7),
      bytes: fc.integer({ min: 1, max: BUDGET }),
      waitMs: fc.oneof(fc.constant(0), fc.nat(LIFETIME_MS)),
      repeats: fc.integer({ min: 1, max: 30 }),
    })
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.integer({ min: 1, max: 8 }),
        (steps, n) => {
          const store = new ModelStore()
          const others = n - 1
          // Each user has a namespace of its own, which never holds more than the user.
          const modestBytes = Math.floor((USER_WEIGHT * BUDGET) / (USER_WEIGHT * n + 1) ** 2)
          const recent: { readonly at: number; readonly bytes: number }[] = []
          for (const { tenant, bytes, waitMs, repeats } of steps) {
            store.now += waitMs
            for (let count = 0; count < repeats && others > 0; count++) {
              store.write(`greedy-${tenant % others}`, bytes)
            }
            assert.ok(store.freeBytes >= BUDGET / (USER_WEIGHT * n + 1), 'a part is always free')
            const held = recent
              .filter(({ at }) => at > store.now - 1.25 * LIFETIME_MS)
              .reduce((sum, one) => sum + one.bytes, 0)
            const asked = Math.min(bytes, modestBytes - held)
            if (asked <= 0) continue
            assert.ok(store.write('modest', asked), `${asked} of ${modestBytes}, holding ${held}`)
            recent.push({ at: store.now, bytes: asked })
          }
        },
      ),
      { numRuns: 300 },
    )
  })
})
