import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import type { Peer } from '../../http/exchange.ts'
import { attributesOf } from '../attributes.ts'
import { ANONYMOUS, HOST, type User } from '../user.ts'
import { type Entry, type LimitsOptions, RequestLimits } from './limits.ts'
import { RefusalPace } from './refusal-pace.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const ALL_EVENTS = '/apis/events.k8s.io/v1/events'
const ada: User = { name: 'ada', groups: ['system:authenticated'] }
const bob: User = { name: 'bob', groups: ['system:authenticated'] }
const master: User = { name: 'root', groups: ['system:masters'] }

function limitsOf(options: Partial<LimitsOptions> = {}): RequestLimits {
  return new RequestLimits({
    requestsInFlight: 80,
    mutatingRequestsInFlight: 80,
    watches: 10,
    watchesPerUser: 4,
    ...options,
  })
}

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly signal?: AbortSignal
  readonly unreadBytesMax?: number
  readonly address?: string
  readonly isOpen?: boolean
}

function enter(limits: RequestLimits, user: User, asked: Asked = {}): Entry | Promise<Entry> {
  const request = {
    method: asked.method ?? 'GET',
    path: asked.path ?? `${EVENTS}/web-0.1`,
    query: new URLSearchParams(asked.query),
    signal: asked.signal ?? new AbortController().signal,
    unreadBytesMax: asked.unreadBytesMax ?? 0,
    peer: peerAt(asked.address ?? '10.9.9.9'),
  }
  const { isOpen = false } = asked
  return limits.enter({ user, attributes: attributesOf(request), request, isOpen })
}

function peerAt(address: string): Peer {
  return { address, isLoopback: address === '127.0.0.1', clientCertificate: () => undefined }
}

/** Enters as often as that is possible at once; nobody is left waiting. */
function fill(limits: RequestLimits, user: User, asked: Asked = {}): Entry[] {
  const entries: Entry[] = []
  const over = new AbortController()
  for (;;) {
    const entry = enter(limits, user, { ...asked, signal: over.signal })
    if (entry instanceof Promise) {
      entry.catch(() => {})
      over.abort(new Error('not waiting'))
      return entries
    }
    entries.push(entry)
  }
}

const leave = (entry: Entry): void => entry[Symbol.dispose]()
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('RequestLimits', () => {
  test('reads and writes have rooms of their own', () => {
    const limits = limitsOf()
    fill(limits, ada)
    fill(limits, bob)
    assert.ok(!(enter(limits, ada, { method: 'POST', path: EVENTS }) instanceof Promise))
    assert.equal(limits.inFlight('mutating'), 1)
  })

  test('a request that waits in vain is answered with 429 and a time to come back', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const seen = new Set<number | undefined>()
    for (const random of [0, 0.3, 0.6, 0.99]) {
      const refused: unknown[] = []
      const limits = limitsOf({
        random: () => random,
        observer: { waited: () => {}, refused: (...what) => refused.push(what) },
      })
      fill(limits, ada)
      const waiting = enter(limits, ada)
      assert.equal(limits.inQueue('readOnly'), 1)
      context.mock.timers.tick(2000)
      await settle()
      assert.deepEqual([limits.inQueue('readOnly'), limits.turningAway], [0, 1])
      context.mock.timers.tick(20)
      await assert.rejects(Promise.resolve(waiting), (error) => {
        assert.ok(error instanceof StatusError)
        assert.equal(error.code, 429)
        assert.equal(error.reason, 'TooManyRequests')
        seen.add(error.details?.retryAfterSeconds)
        return true
      })
      assert.deepEqual(refused, [['readOnly', 'time-out', 'ada']])
    }
    assert.deepEqual([...seen], [1, 2, 3, 4])
  })

  test('one that is to be refused is let in if there is room when its turn comes, unless it is old', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    for (const [ageMs, isLetIn] of [
      [4999, true],
      [5000, false],
    ] as const) {
      let now = 0
      const refused: unknown[] = []
      const limits = limitsOf({
        clock: { now: () => now },
        observer: { waited: () => {}, refused: (...what) => refused.push(what) },
      })
      const entries = fill(limits, ada)
      const waiting = Promise.resolve(enter(limits, ada))
      context.mock.timers.tick(2000)
      await settle()
      for (const entry of entries) leave(entry)
      now = ageMs
      context.mock.timers.tick(20)
      if (isLetIn) leave(await waiting)
      else await assert.rejects(waiting, StatusError)
      assert.equal(refused.length, isLetIn ? 0 : 1)
      assert.deepEqual([limits.inFlight('readOnly'), limits.turningAway], [0, 0])
    }
  })

  test('whoever is turned away while busy is told only as others are served', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const limits = limitsOf({ pace: new RefusalPace({ busyPart: () => 1 }) })
    fill(limits, ada)
    let told = 0
    for (let count = 0; count < 10; count++) {
      Promise.resolve(enter(limits, ada)).catch(() => {
        told += 1
      })
    }
    context.mock.timers.tick(2000)
    await settle()
    assert.deepEqual([limits.turningAway, told], [10, 0])
    for (let count = 0; count < 12; count++) leave(await enter(limits, bob))
    context.mock.timers.tick(20)
    await settle()
    assert.deepEqual([limits.turningAway, told], [7, 3])
  })

  test('whoever would have to wait with more of a body than there is memory for is told at once', async () => {
    const limits = limitsOf()
    const write = { method: 'POST', path: EVENTS, unreadBytesMax: 32 * 1024 * 1024 }
    fill(limits, ada, write)
    await settle()
    const gone = new AbortController()
    const waiting = [1, 2].map(() => enter(limits, ada, { ...write, signal: gone.signal }))
    await assert.rejects(Promise.resolve(enter(limits, ada, write)), { code: 429 })
    gone.abort(new Error('gone'))
    await Promise.allSettled(waiting)
    const next = enter(limits, ada, { ...write, signal: AbortSignal.timeout(1) })
    await assert.rejects(Promise.resolve(next), { name: 'TimeoutError' })
  })

  test('a watch that is to be refused leaves its place to others before it is told', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const limits = limitsOf({ watches: 1 })
    const entries = fill(limits, ada)
    const watch = { path: EVENTS, query: 'watch=true&resourceVersion=1' }
    const refused = Promise.resolve(enter(limits, ada, watch))
    assert.equal(limits.watching, 1)
    context.mock.timers.tick(2000)
    await settle()
    assert.deepEqual([limits.watching, limits.turningAway], [0, 1])
    for (const entry of entries) leave(entry)
    context.mock.timers.tick(20)
    await assert.rejects(refused, { code: 429 })
    assert.deepEqual([limits.watching, limits.inFlight('readOnly')], [0, 0])
  })

  test('one who waits is let in when somebody leaves', async () => {
    const limits = limitsOf()
    const [first] = fill(limits, ada)
    const waiting = enter(limits, ada)
    assert.ok(first)
    leave(first)
    leave(await waiting)
    assert.equal(limits.inQueue('readOnly'), 0)
  })

  test('whoever goes away while waiting gives up its place in the queue', async () => {
    const limits = limitsOf({ watches: 1 })
    fill(limits, ada)
    const gone = new AbortController()
    const waiting = enter(limits, ada, { path: EVENTS, query: 'watch=1', signal: gone.signal })
    gone.abort(new Error('gone'))
    await assert.rejects(Promise.resolve(waiting), /gone/)
    assert.deepEqual([limits.inQueue('readOnly'), limits.watching], [0, 0])
  })

  test('health, version and metrics need no place', () => {
    const limits = limitsOf({ requestsInFlight: 1 })
    fill(limits, ada)
    const mustWait = (path: string): boolean => {
      const over = new AbortController()
      const entry = enter(limits, ada, { path, signal: over.signal })
      if (entry instanceof Promise) entry.catch(() => {})
      else leave(entry)
      over.abort(new Error('not waiting'))
      return entry instanceof Promise
    }
    for (const path of ['/livez', '/readyz/ping', '/healthz', '/version', '/metrics/slis']) {
      assert.equal(mustWait(path), false, path)
    }
    for (const path of ['/apis', '/livezy', EVENTS]) assert.equal(mustWait(path), true, path)
  })

  test('accounts that hold probes unread cannot take the places of the host, of kubelet and of masters', () => {
    const limits = limitsOf({ requestsInFlight: 10 })
    const unread = { path: '/readyz' }
    const accounts = Array.from({ length: 60 }, (_, at) => ({ name: `user-${at}`, groups: [] }))
    for (const user of accounts) fill(limits, user, unread)
    const mustWait = (user: User, asked: Asked): boolean => {
      const entry = enter(limits, user, asked)
      if (entry instanceof Promise) entry.catch(() => {})
      return entry instanceof Promise
    }
    const kubelet = { path: '/livez', isOpen: true, address: '10.0.0.1' }
    for (let count = 0; count < 3; count++) {
      assert.equal(mustWait(HOST, { path: '/livez', address: '127.0.0.1' }), false)
      assert.equal(mustWait(ANONYMOUS, kubelet), false)
      assert.equal(mustWait(ada, { path: '/livez', address: '127.0.0.1' }), false)
      assert.equal(mustWait(master, { path: '/metrics' }), false)
    }
    // Neither can addresses without credentials.
    for (let at = 0; at < 60; at++) {
      fill(limits, ANONYMOUS, { ...kubelet, address: `10.0.1.${at}` })
    }
    assert.equal(mustWait(HOST, { path: '/livez', address: '127.0.0.1' }), false)
    assert.equal(mustWait(master, { path: '/metrics' }), false)
    assert.equal(mustWait(bob, { path: '/livez' }), true)
  })

  test('a user with many probes under way takes places of reads for the rest', () => {
    const limits = limitsOf()
    for (let count = 0; count < 10; count++) void enter(limits, ada, { path: '/version' })
    assert.equal(limits.inFlight('readOnly'), 6)
  })

  test('one user does not take all the places for refusals', () => {
    const limits = limitsOf()
    const take = (user: string): number => {
      for (let count = 0; ; count++) if (limits.enterRefused(user) === undefined) return count
    }
    for (const user of ['a', 'b', 'c', 'd', 'e', 'f']) assert.equal(take(user), 250)
    assert.ok(limits.enterRefused('g'))
  })

  test('masters have room of their own when the shared one is full, and not without end', () => {
    const limits = limitsOf()
    const others = [ada, bob, { name: 'eve', groups: [] }, { name: 'joe', groups: [] }]
    for (const user of others) fill(limits, user)
    const before = limits.inFlight('readOnly')
    assert.equal(before, 80)
    const count = fill(limits, master).length
    assert.ok(count >= 1 && count <= 8, `${count}`)
  })

  test('a list counts by how much it asks for', () => {
    const widths: [Asked, number][] = [
      [{}, 60],
      [{ path: EVENTS, query: 'limit=100' }, 60],
      [{ path: EVENTS, query: 'limit=500' }, 12],
      [{ path: EVENTS }, 3],
      [{ path: EVENTS, query: 'limit=-1' }, 3],
      [{ path: EVENTS, query: 'limit=many' }, 3],
      [{ path: EVENTS, query: 'limit=99999999' }, 3],
      [{ path: EVENTS, query: 'limit=1&labelSelector=a' }, 3],
      [{ path: EVENTS, query: 'limit=1&fieldSelector=type=Normal' }, 3],
      [{ path: EVENTS, query: 'fieldSelector=metadata.name=x' }, 60],
      [{ path: ALL_EVENTS, query: 'fieldSelector=metadata.name=x' }, 3],
      [{ path: ALL_EVENTS, query: 'fieldSelector=regarding.uid=x' }, 60],
      [{ path: ALL_EVENTS, query: 'fieldSelector=regarding.uid!=x' }, 3],
      [{ path: ALL_EVENTS, query: 'fieldSelector=reason=a%5C,regarding.uid=x' }, 3],
      [{ path: EVENTS, method: 'DELETE' }, 3],
    ]
    for (const [asked, count] of widths) {
      assert.equal(fill(limitsOf(), ada, asked).length, count, JSON.stringify(asked))
    }
    const limits = limitsOf({ watchesPerUser: 0, watches: 0 })
    assert.equal(fill(limits, ada, { path: EVENTS, query: 'watch=1' }).length, 3)
    const later = limitsOf({ watchesPerUser: 0, watches: 0 })
    const from = { path: EVENTS, query: 'watch=1&resourceVersion=7' }
    assert.equal(fill(later, ada, from).length, 60)
    const whole = limitsOf({ watchesPerUser: 0, watches: 0 })
    const again = { path: EVENTS, query: 'watch=1&resourceVersion=7&sendInitialEvents=true' }
    assert.equal(fill(whole, ada, again).length, 3)
  })

  test('a watch counts among requests until it has begun, and among watches until it ends', async () => {
    const limits = limitsOf()
    const watch = await enter(limits, ada, { path: EVENTS, query: 'watch=true' })
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [1, 1])
    watch.settle()
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [0, 1])
    leave(watch)
    leave(watch)
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [0, 0])
  })

  test('watches are bounded for a user and in all', async () => {
    const refused: unknown[] = []
    const limits = limitsOf({
      observer: { waited: () => {}, refused: (...what) => refused.push(what) },
    })
    const watch = { path: EVENTS, query: 'watch=1&resourceVersion=5' }
    const tooMany = (error: unknown): boolean =>
      error instanceof StatusError &&
      error.code === 429 &&
      (error.details?.retryAfterSeconds ?? 0) >= 5
    const held = await Promise.all([1, 2, 3, 4].map(() => enter(limits, ada, watch)))
    const refusal = Promise.resolve(enter(limits, ada, watch))
    assert.equal(limits.turningAway, 1, 'a refusal waits for its turn')
    await assert.rejects(refusal, tooMany)
    for (const name of ['b', 'b', 'b', 'c', 'c', 'c']) {
      await enter(limits, { name, groups: [] }, watch)
    }
    await assert.rejects(Promise.resolve(enter(limits, { name: 'd', groups: [] }, watch)), tooMany)
    assert.deepEqual(refused, [
      ['watch', 'user-watches-full', 'ada'],
      ['watch', 'watches-full', 'd'],
    ])
    for (const entry of held) leave(entry)
    await enter(limits, ada, watch)
    assert.equal(limits.watching, 7)
  })

  test('0 means no limit', () => {
    const limits = limitsOf({
      requestsInFlight: 0,
      mutatingRequestsInFlight: 0,
      watches: 0,
      watchesPerUser: 0,
    })
    for (let count = 0; count < 1000; count++) {
      assert.ok(!(enter(limits, ada, { path: EVENTS, query: 'watch=1' }) instanceof Promise))
      assert.ok(!(enter(limits, ada, { path: EVENTS, method: 'POST' }) instanceof Promise))
    }
    assert.equal(limits.inFlight('mutating'), 1000)
  })
})
