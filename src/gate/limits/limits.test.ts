import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import type { Peer } from '../../http/exchange.ts'
import { readTarget } from '../target.ts'
import { ANONYMOUS, HOST, type User } from '../user.ts'
import { type Entry, type LimitsOptions, RequestLimits } from './limits.ts'
import { RefusalPace } from './refusal-pace.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
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

interface RequestOptions {
  readonly method?: string
  readonly path?: string
  readonly query?: string
  readonly signal?: AbortSignal
  readonly address?: string
  readonly isOpen?: boolean
  readonly isAboutServer?: boolean
}

function enter(
  limits: RequestLimits,
  user: User,
  options: RequestOptions = {},
): Entry | Promise<Entry> {
  const request = {
    method: options.method ?? 'GET',
    path: options.path ?? `${EVENTS}/web-0.1`,
    query: new URLSearchParams(options.query),
    signal: options.signal ?? new AbortController().signal,
    headers: {},
    peer: peerAt(options.address ?? '10.9.9.9'),
  }
  // What is not below /api, /apis or /clusters stands for a service about the server itself.
  const { isOpen = false, isAboutServer = !/^\/(api|clusters)/.test(request.path) } = options
  return limits.enter({
    user,
    target: readTarget(request, 'local'),
    request,
    isOpen,
    isAboutServer,
  })
}

function peerAt(address: string): Peer {
  return { address, isLoopback: address === '127.0.0.1', clientCertificate: () => undefined }
}

/** Enters as often as possible without waiting; the first request that has to wait is cancelled. */
function fill(limits: RequestLimits, user: User, options: RequestOptions = {}): Entry[] {
  const entries: Entry[] = []
  const over = new AbortController()
  for (;;) {
    const entry = enter(limits, user, { ...options, signal: over.signal })
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
  test('reads and writes have separate slots', () => {
    const limits = limitsOf()
    fill(limits, ada)
    fill(limits, bob)
    assert.ok(!(enter(limits, ada, { method: 'POST', path: EVENTS }) instanceof Promise))
    assert.equal(limits.inFlight('mutating'), 1)
  })

  test('returns 429 with a Retry-After when a request waits in vain', async (context) => {
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

  test('a request whose 429 is held back is admitted if a slot is free by then, unless it is old', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    for (const [ageMs, isAdmitted] of [
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
      if (isAdmitted) leave(await waiting)
      else await assert.rejects(waiting, StatusError)
      assert.equal(refused.length, isAdmitted ? 0 : 1)
      assert.deepEqual([limits.inFlight('readOnly'), limits.turningAway], [0, 0])
    }
  })

  test('429 responses are sent only as other requests are served, while the event loop is busy', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const limits = limitsOf({ pace: new RefusalPace({ busyPart: () => 1 }) })
    fill(limits, ada)
    let refused = 0
    for (let count = 0; count < 10; count++) {
      Promise.resolve(enter(limits, ada)).catch(() => {
        refused += 1
      })
    }
    context.mock.timers.tick(2000)
    await settle()
    assert.deepEqual([limits.turningAway, refused], [10, 0])
    for (let count = 0; count < 12; count++) leave(await enter(limits, bob))
    context.mock.timers.tick(20)
    await settle()
    assert.deepEqual([limits.turningAway, refused], [7, 3])
  })

  test('a watch whose 429 is held back gives its watch slot back', async (context) => {
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

  test('a waiting request is admitted when another one ends', async () => {
    const limits = limitsOf()
    const [first] = fill(limits, ada)
    const waiting = enter(limits, ada)
    assert.ok(first)
    leave(first)
    leave(await waiting)
    assert.equal(limits.inQueue('readOnly'), 0)
  })

  test('a request that is cancelled while it waits leaves the queue', async () => {
    const limits = limitsOf({ watches: 1 })
    fill(limits, ada)
    const gone = new AbortController()
    const waiting = enter(limits, ada, { path: EVENTS, query: 'watch=1', signal: gone.signal })
    gone.abort(new Error('gone'))
    await assert.rejects(Promise.resolve(waiting), /gone/)
    assert.deepEqual([limits.inQueue('readOnly'), limits.watching], [0, 0])
  })

  test('a request about the server itself needs none of the slots for other requests', () => {
    const limits = limitsOf({ requestsInFlight: 1 })
    fill(limits, ada)
    const mustWait = (path: string, isAboutServer: boolean): boolean => {
      const over = new AbortController()
      const entry = enter(limits, ada, { path, isAboutServer, signal: over.signal })
      if (entry instanceof Promise) entry.catch(() => {})
      else leave(entry)
      over.abort(new Error('not waiting'))
      return entry instanceof Promise
    }
    for (const path of ['/livez', '/apis', EVENTS]) {
      assert.equal(mustWait(path, true), false, path)
      assert.equal(mustWait(path, false), true, path)
    }
  })

  test('users that do not read probe responses cannot take the slots of the host, kubelet and masters', () => {
    const limits = limitsOf({ requestsInFlight: 10 })
    const unread = { path: '/readyz' }
    const accounts = Array.from({ length: 60 }, (_, at) => ({ name: `user-${at}`, groups: [] }))
    for (const user of accounts) fill(limits, user, unread)
    const mustWait = (user: User, options: RequestOptions): boolean => {
      const entry = enter(limits, user, options)
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

  test('a user with many probes in flight takes slots of reads for the rest', () => {
    const limits = limitsOf()
    for (let count = 0; count < 10; count++) void enter(limits, ada, { path: '/version' })
    assert.equal(limits.inFlight('readOnly'), 6)
  })

  test('masters have a limited reserve of slots when the shared ones are taken', () => {
    const limits = limitsOf()
    for (let n = 0; n < 40; n++) fill(limits, { name: `user ${n}`, groups: [] })
    const before = limits.inFlight('readOnly')
    assert.equal(before, 80)
    const count = fill(limits, master).length
    assert.ok(count >= 1 && count <= 8, `${count}`)
  })

  test('a wide request takes several slots', () => {
    const narrow = fill(limitsOf(), ada).length
    assert.equal(
      fill(limitsOf(), ada, { path: EVENTS, query: 'limit=500' }).length,
      Math.floor(narrow / 5),
    )
  })

  test('a watch counts as a request until it has begun, and as a watch until it ends', async () => {
    const limits = limitsOf()
    const watch = await enter(limits, ada, { path: EVENTS, query: 'watch=true' })
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [1, 1])
    watch.settle()
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [0, 1])
    leave(watch)
    leave(watch)
    assert.deepEqual([limits.inFlight('readOnly'), limits.watching], [0, 0])
  })

  test('watches are limited per user and in total', async () => {
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
    assert.equal(limits.turningAway, 1, 'a refusal is held back')
    await assert.rejects(refusal, tooMany)
    for (const name of ['b', 'b', 'b', 'c', 'c', 'd']) {
      await enter(limits, { name, groups: [] }, watch)
    }
    await assert.rejects(Promise.resolve(enter(limits, { name: 'e', groups: [] }, watch)), tooMany)
    assert.deepEqual(refused, [
      ['watch', 'user-watches-full', 'ada'],
      ['watch', 'watches-full', 'e'],
    ])
    for (const entry of held) leave(entry)
    await enter(limits, ada, watch)
    assert.equal(limits.watching, 7)
  })

  test('a limit of 0 means no limit', () => {
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
