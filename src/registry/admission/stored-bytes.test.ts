import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StoredBytes, type Storing, USER_WEIGHT } from './stored-bytes.ts'

const BUDGET = 1_000_000
const LIFETIME_MS = 60_000

interface Live {
  readonly namespace: string
  readonly bytes: number
  readonly expiresAt: number
}

/** A store whose events expire, behind the budget under test. */
class ModelStore {
  now = 0
  #live: Live[] = []
  readonly budget: StoredBytes = new StoredBytes({
    resources: [
      {
        name: 'memory',
        budgetBytes: () => BUDGET,
        usedBytes: () => this.usedBytes,
        countsWrites: true,
      },
    ],
    sizes: {
      of: (cluster, namespace) => ({ cluster, namespace, events: 0, bytes: this.#in(namespace) }),
    },
    lifetimeMs: () => LIFETIME_MS,
    now: () => this.now,
  })

  get usedBytes(): number {
    this.#live = this.#live.filter(({ expiresAt }) => expiresAt > this.now)
    return this.#live.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  get freeBytes(): number {
    return BUDGET - this.usedBytes
  }

  write(account: string, bytes: number, namespace: string = account): boolean {
    const storing: Storing = { cluster: 'c', account, namespace }
    if (this.budget.exceeded(storing, bytes) !== undefined) return false
    this.budget.store(storing, bytes)
    this.#live.push({ namespace, bytes, expiresAt: this.now + LIFETIME_MS })
    return true
  }

  /** Writes until it is refused. */
  fill(account: string, bytes: number, namespace?: string): number {
    let count = 0
    while (this.write(account, bytes, namespace)) count++
    return count * bytes
  }

  #in(namespace: string | undefined): number {
    return this.#live
      .filter((live) => live.namespace === namespace)
      .reduce((sum, { bytes }) => sum + bytes, 0)
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
    for (let count = 0; count < 10; count++) store.budget.store(rewritten, BUDGET)
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
      lifetimeMs: () => LIFETIME_MS,
      now: () => 0,
    })
    const exceeded = budget.exceeded({ cluster: 'c' }, 1)
    assert.deepEqual([exceeded?.type, exceeded?.isExhausted], ['Cluster', true])
  })

  test('writes that memory does not have yet are counted', () => {
    let now = 0
    const budget = new StoredBytes({
      resources: [{ name: 'memory', budgetBytes: () => BUDGET, usedBytes: () => 0 }],
      lifetimeMs: () => LIFETIME_MS,
      now: () => now,
    })
    const storing: Storing = { cluster: 'c', account: 'ada', namespace: 'a' }
    budget.store(storing, 0.6 * BUDGET)
    assert.equal(budget.exceeded(storing, 1)?.type, 'User')
    now = 2_000
    assert.equal(budget.exceeded(storing, 1), undefined)
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
