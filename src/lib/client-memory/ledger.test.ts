import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConnectionAccount } from './connection-account.ts'
import { HELD_KINDS } from './held-kinds.ts'
import { DEFAULT_LEDGER_LIMITS, type LedgerLimits, MemoryLedger } from './ledger.ts'

const KIB = 1024
/** The fixed amount that is charged for every request. */
const REQUEST = 16 * KIB

/** The defaults of `--max-watches` and `--max-watches-per-user`. */
const MAX_WATCHES = 20_000
const MAX_WATCHES_PER_USER = 5000

const limits: LedgerLimits = {
  connectionBytes: 400 * KIB,
  unauthenticatedConnectionBytes: 100 * KIB,
  unauthenticatedBytes: 250 * KIB,
  unauthenticatedConnections: 3,
  userBytes: 300 * KIB,
  connections: 100,
  userConnections: 2,
  totalBytes: 1000 * KIB,
}

function opened(ledger: MemoryLedger, now = 0): { account: ConnectionAccount; isCut(): boolean } {
  let isCut = false
  const account = ledger.connection(
    () => {
      isCut = true
    },
    { now },
  )
  return { account, isCut: () => isCut }
}

describe('the memory ledger', () => {
  test('calls onRefused for a user that exceeds a limit, but not for an unauthenticated client', () => {
    const ledger = new MemoryLedger(limits)
    const refused: string[] = []
    ledger.onRefused = (user, limit) => refused.push(`${user}: ${limit}`)
    const { account } = opened(ledger)
    using holding = account.open(10)
    assert.equal(holding.hold('body', 200 * KIB), 'connection')
    assert.equal(holding.own('ann'), undefined)
    assert.equal(holding.hold('body', 300 * KIB), 'user')
    assert.deepEqual(refused, ['ann: user'])
  })

  test('counts a connection for its first user until it is closed', () => {
    const ledger = new MemoryLedger(limits)
    const accounts = [1, 2, 3].map(() => opened(ledger).account)
    const ownAll = (): readonly unknown[] =>
      accounts.map((account) => {
        using holding = account.open(10)
        return holding.own('ann')
      })
    assert.deepEqual(ownAll(), [undefined, undefined, 'user-connections'])
    // Other users may share the connection; it still counts for its first user.
    assert.deepEqual(ownAll(), [undefined, undefined, undefined])
    using others = accounts[0]?.open(10)
    assert.equal(others?.own('bob'), undefined)
    assert.equal(ledger.refused['user-connections'], 1)
    for (const account of accounts) account.close()
    others?.[Symbol.dispose]()
    ledger.sweep()
    assert.equal(ledger.users, 0)
  })

  test('counts held bytes by kind until they are released', () => {
    const ledger = new MemoryLedger(limits)
    const { account } = opened(ledger)
    using holding = account.open(10)
    assert.equal(holding.own('ann'), undefined)
    assert.equal(holding.hold('body', 100), undefined)
    assert.equal(holding.hold('body', 50), undefined)
    assert.equal(ledger.held.body, 150)
    assert.equal(ledger.heldBy('ann'), REQUEST + 160)
    assert.equal(ledger.totalBytes, REQUEST + 160)
    holding.set('body', 0)
    assert.equal(ledger.held.body, 0)
    holding[Symbol.dispose]()
    holding[Symbol.dispose]()
    assert.equal(ledger.totalBytes, 0)
    assert.equal(ledger.heldBy('ann'), 0)
    assert.equal(account.bytes, 0)
    assert.equal(holding.hold('body', 5), undefined)
    assert.equal(ledger.held.body, 0)
  })

  test('rejects a user that holds too much on every connection, but not other users', () => {
    const ledger = new MemoryLedger(limits)
    const one = opened(ledger).account.open(0)
    assert.equal(one.own('ann'), undefined)
    assert.equal(one.hold('response', 290 * KIB - REQUEST), undefined)
    assert.equal(opened(ledger).account.open(0).own('ann'), 'user')
    assert.equal(opened(ledger).account.open(0).own('bob'), undefined)
    assert.equal(ledger.refused.user, 1)
  })

  test('does not charge bytes that exceed a limit', () => {
    const ledger = new MemoryLedger(limits)
    const holding = opened(ledger).account.open(0)
    assert.equal(holding.own('ann'), undefined)
    assert.equal(holding.hold('body', 300 * KIB), 'user')
    assert.equal(ledger.held.body, 0)
    assert.equal(holding.hold('body', 200 * KIB), undefined)
  })

  test('limits a connection more strictly until a client has authenticated on it', () => {
    const ledger = new MemoryLedger(limits)
    const { account } = opened(ledger)
    const first = account.open(60 * KIB)
    assert.equal(first.exceededLimit(), undefined)
    assert.equal(account.open(60 * KIB).exceededLimit(), 'connection')
    const known = opened(ledger).account
    assert.equal(known.open(60 * KIB).own('ann'), undefined)
    assert.equal(known.open(60 * KIB).exceededLimit(), undefined)
  })

  test('does not count memory of authenticated users for the connection they share', () => {
    const ledger = new MemoryLedger(limits)
    const { account, isCut } = opened(ledger)
    for (const user of ['ann', 'bob', 'cid']) {
      const holding = account.open(0)
      assert.equal(holding.own(user), undefined)
      assert.equal(holding.hold('response', 200 * KIB), undefined)
    }
    assert.equal(account.open(0).own('dan'), undefined)
    assert.equal(account.bytes, 0)
    account.cut()
    assert.deepEqual([isCut(), account.isCut], [false, false])
  })

  test('closes the unauthenticated connection that holds most when all together hold too much', () => {
    const ledger = new MemoryLedger(limits)
    const heavy = opened(ledger)
    const light = opened(ledger)
    const newest = opened(ledger)
    assert.equal(heavy.account.open(80 * KIB).exceededLimit(), undefined)
    assert.equal(light.account.open(60 * KIB).exceededLimit(), undefined)
    assert.equal(newest.account.open(70 * KIB).exceededLimit(), undefined)
    assert.deepEqual([heavy.isCut(), light.isCut(), newest.isCut()], [true, false, false])
    assert.equal(ledger.refused.unauthenticated, 1)
  })

  test('releases the memory of a closed connection immediately, so that no other is closed for it', () => {
    const ledger = new MemoryLedger(limits)
    const heavy = opened(ledger)
    const others = [opened(ledger), opened(ledger), opened(ledger)]
    heavy.account.open(80 * KIB)
    for (const { account } of others)
      assert.equal(account.open(40 * KIB).exceededLimit(), undefined)
    assert.equal(others[0]?.account.open(0).exceededLimit(), undefined)
    assert.deepEqual([heavy.isCut(), heavy.account.isCut, heavy.account.bytes], [true, true, 0])
    assert.equal(ledger.unauthenticatedBytes, ledger.totalBytes)
    for (const { account } of others) assert.equal(account.open(0).exceededLimit(), undefined)
    assert.deepEqual(
      others.map(({ isCut }) => isCut()),
      [false, false, false],
    )
    assert.equal(ledger.refused.unauthenticated, 1)
  })

  test('cancels unauthenticated requests on an authenticated connection, which stays open', () => {
    const ledger = new MemoryLedger(limits)
    const shared = opened(ledger)
    const authenticated = shared.account.open(0)
    assert.equal(authenticated.own('ann'), undefined)
    assert.equal(authenticated.hold('response', 50 * KIB), undefined)
    const cancelled: number[] = []
    for (let index = 0; index < 10; index++) {
      const holding = shared.account.open(5 * KIB)
      holding.onRevoked = { revoked: () => cancelled.push(index) }
      assert.equal(holding.exceededLimit(), undefined)
    }
    const small = opened(ledger)
    assert.equal(small.account.open(50 * KIB).exceededLimit(), undefined)
    assert.deepEqual([cancelled.length, shared.isCut(), small.isCut()], [10, false, false])
    assert.equal(ledger.heldBy('ann'), 66 * KIB)
    assert.equal(ledger.unauthenticatedBytes, 66 * KIB)
  })

  test('releases all memory in the end, whatever the order of requests', () => {
    const ledger = new MemoryLedger({ ...limits, unauthenticatedBytes: 200 * KIB })
    const accounts: ConnectionAccount[] = []
    const open: Disposable[] = []
    const random = randomIntegers(7)
    const request = (account: ConnectionAccount): void => {
      const holding = account.open(random(20 * KIB))
      open.push(holding)
      if (random(3) === 0) holding.own(`user-${random(3)}`)
      else holding.exceededLimit()
      if (random(4) === 0) holding.becomeWatch()
      holding.hold('response', random(30 * KIB))
    }
    for (let step = 0; step < 5000; step++) {
      const account = accounts[random(3)]
      if (account === undefined || account.isCut) accounts[random(3)] = opened(ledger).account
      else request(account)
      if (open.length > 8) open.splice(random(open.length), 1)[0]?.[Symbol.dispose]()
      assert.ok(ledger.unauthenticatedBytes <= 200 * KIB)
    }
    for (const holding of open) holding[Symbol.dispose]()
    assert.deepEqual([ledger.totalBytes, ledger.unauthenticatedBytes], [0, 0])
    for (const kind of HELD_KINDS) assert.equal(ledger.held[kind], 0, kind)
    for (const account of accounts) assert.equal(account.bytes, 0)
    assert.equal(ledger.sums.unidentified, undefined)
  })

  test('reduces a burst of unauthenticated connections to the limit after a few seconds', () => {
    const ledger = new MemoryLedger(limits)
    const all = Array.from({ length: 50 }, (_, now) => opened(ledger, now))
    assert.equal(ledger.unauthenticatedConnections, 50)
    ledger.sweep(1999)
    assert.equal(ledger.unauthenticatedConnections, 50)
    ledger.sweep(3000)
    assert.equal(ledger.unauthenticatedConnections, 3)
    assert.equal(all.filter(({ isCut }) => isCut()).length, 47)
  })

  test('closes the oldest of too many unauthenticated connections, unless it is young', () => {
    const ledger = new MemoryLedger(limits)
    const all = [0, 1, 2, 3].map((now) => opened(ledger, now))
    assert.deepEqual(
      all.map(({ isCut }) => isCut()),
      [false, false, false, false],
    )
    opened(ledger, 2001)
    assert.deepEqual(
      all.map(({ isCut }) => isCut()),
      [true, true, false, false],
    )
    const known = all[2]?.account
    assert.equal(known?.open(0).own('ann'), undefined)
    opened(ledger, 3000)
    opened(ledger, 3001)
    assert.equal(all[2]?.isCut(), false)
    assert.equal(all[3]?.isCut(), true)
  })

  test('counts a connection that is closed for a new one', () => {
    const ledger = new MemoryLedger(limits)
    const all = [0, 1, 2].map((now) => opened(ledger, now))
    assert.equal(ledger.canAccept('', 1999), false)
    assert.equal(ledger.canAccept('', 2000), true)
    assert.equal(all[0]?.isCut(), true)
    assert.equal(ledger.refused['unauthenticated-connections'], 1)
    opened(ledger, 2000)
    assert.equal(all[1]?.account.open(0).own('ann'), undefined)
    assert.equal(ledger.canAccept('', 2000), true)
    assert.equal(all[1]?.isCut(), false)
  })

  test('serves users that hold little above the total limit, but not others', () => {
    const ledger = new MemoryLedger(limits)
    for (const user of ['a', 'b', 'c', 'd']) {
      const holding = opened(ledger).account.open(0)
      assert.equal(holding.own(user), undefined)
      holding.hold('body', 230 * KIB)
    }
    assert.equal(opened(ledger).account.open(0).own('first'), undefined)
    assert.ok(ledger.totalBytes >= 1000 * KIB)
    assert.equal(opened(ledger).account.open(0).own('small'), undefined)
    assert.equal(opened(ledger).account.open(0).own('a'), 'total')
  })

  test('removes idle users in the sweep, or immediately when there are many', () => {
    const ledger = new MemoryLedger()
    const { account } = opened(ledger)
    using kept = account.open(0)
    kept.own('kept')
    for (let index = 0; index < 5000; index++) {
      using holding = account.open(0)
      holding.own(`user-${index}`)
    }
    assert.ok(ledger.users <= 1001, `${ledger.users}`)
    ledger.sweep()
    assert.equal(ledger.users, 1)
    assert.ok(ledger.heldBy('kept') > 0)
  })

  test('does not apply the total limit to an unauthenticated request', () => {
    const ledger = new MemoryLedger({ ...limits, userBytes: 10_000 * KIB })
    const holding = opened(ledger).account.open(0)
    assert.equal(holding.own('ann'), undefined)
    holding.set('body', 2000 * KIB)
    const next = opened(ledger).account.open(0)
    assert.equal(next.exceededLimit(), undefined)
    assert.equal(next.own('bob'), 'total')
  })

  test('counts a waiting watch without limiting it in bytes', () => {
    const ledger = new MemoryLedger(limits)
    const { account } = opened(ledger)
    for (let index = 0; index < 100; index++) {
      const holding = account.open(0)
      assert.equal(holding.own('ann'), undefined)
      holding.becomeWatch()
    }
    assert.equal(ledger.held.request, 0)
    assert.ok(ledger.held.watch > 0)
    assert.equal(ledger.heldBy('ann'), 0)
  })

  test('allows all watches of the default number of watches by the default limits', () => {
    const ledger = new MemoryLedger()
    const watch = (user: string, account: ConnectionAccount): void => {
      const holding = account.open(2 * KIB)
      assert.equal(holding.own(user), undefined)
      assert.equal(holding.hold('credentials', 1200), undefined)
      assert.equal(holding.hold('selector', 100), undefined)
      assert.equal(holding.hold('response', 64 * KIB), undefined)
      holding.forgetRequest()
      holding.becomeWatch()
    }
    for (let user = 0; user < MAX_WATCHES / MAX_WATCHES_PER_USER; user++) {
      for (let connection = 0; connection < 50; connection++) {
        const { account } = opened(ledger)
        for (let index = 0; index < MAX_WATCHES_PER_USER / 50; index++) {
          watch(`user-${user}`, account)
        }
      }
    }
    assert.equal(ledger.held.response, 0)
    assert.equal(opened(ledger).account.open(0).own('another'), undefined)
  })
})

function randomIntegers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

describe('connections of all users', () => {
  test('are given to a user only up to as many as are still free', () => {
    const ledger = new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, connections: 12 })
    const open = (user: string): boolean => {
      const account = ledger.connection(() => {})
      using holding = account.open(0)
      const isServed = holding.own(user) === undefined
      // The listener does this with a rejected connection.
      if (!isServed) account.close()
      return isServed
    }
    const served = new Map<string, number>()
    for (let round = 0; round < 20; round++) {
      for (const user of ['ann', 'bob']) {
        if (open(user)) served.set(user, (served.get(user) ?? 0) + 1)
      }
    }
    assert.deepEqual([...served.values()], [4, 4])
    for (const user of ['c', 'd', 'e', 'f']) assert.equal(open(user), true, user)
    assert.equal(open('g'), false)
    assert.equal(ledger.identifiedConnections, 12)
    assert.equal(ledger.refused['user-connections'] > 0, true)
  })
})
