import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pause } from '../../../src/lib/abort.ts'
import { type LogFields, silentLog } from '../../../src/lib/log/log.ts'
import { type EtcdCluster, startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { type Answered, type Call, EventApiUnderTest } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { makeEvent } from '../../support/wire-event.ts'

/** Etcd counts as unavailable after some four seconds; a write sent just before has three more. */
const firstAnswerMsMax = 8_500
/** The request waits for nothing; the time allows for a busy machine. */
const refusalMsMax = 750

const merge = { 'content-type': 'application/merge-patch+json' }
/** One request for each verb; none changes an event that a test reads. */
const verbs: Readonly<Record<string, Call>> = {
  get: { at: 'a/old' },
  list: { at: 'a' },
  'list of everything': { at: '', query: { limit: 500 } },
  create: { method: 'POST', at: 'b', body: makeEvent('b', 'never') },
  patch: {
    method: 'PATCH',
    at: 'a/old',
    headers: merge,
    body: { metadata: { labels: { x: 'y' } } },
  },
  delete: { method: 'DELETE', at: 'a/old' },
  'collection delete': { method: 'DELETE', at: 'a' },
}

interface Timed extends Answered {
  readonly ms: number
}

async function timed(api: EventApiUnderTest, call: Call): Promise<Timed> {
  const begun = performance.now()
  return { ...(await api.call(call)), ms: performance.now() - begun }
}

/** Creates events one after another, from several callers, and records the status of each. */
class Creates implements AsyncDisposable {
  readonly ends = new Map<string, number>()
  msMax = 0
  readonly #api: EventApiUnderTest
  readonly #callers: Promise<unknown>
  #isOver = false

  constructor(api: EventApiUnderTest) {
    this.#api = api
    this.#callers = Promise.all(Array.from({ length: 8 }, (_, caller) => this.#create(caller)))
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#callers
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** Names whose create ended with one of these statuses. */
  ended(...statuses: readonly number[]): readonly string[] {
    return [...this.ends].filter(([, end]) => statuses.includes(end)).map(([name]) => name)
  }

  async #create(caller: number): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const name = `e${caller}-${number}`
      const call = { method: 'POST', at: 'load', body: makeEvent('load', name) }
      const { status, ms } = await timed(this.#api, call)
      this.ends.set(name, status)
      this.msMax = Math.max(this.msMax, ms)
      await pause(status === 201 ? 5 : 50)
    }
  }
}

async function namesIn(api: EventApiUnderTest, at: string): Promise<ReadonlySet<string>> {
  const { json } = await api.call({ at })
  return new Set(json.items.map((item: Answered['json']) => item.metadata.name))
}

/** No rejected create was applied, and no acknowledged create is missing. */
async function checkHonesty(api: EventApiUnderTest, creates: Creates): Promise<void> {
  const there = await namesIn(api, 'load')
  assert.deepEqual(
    creates.ended(503).filter((name) => there.has(name)),
    [],
  )
  assert.deepEqual(
    creates.ended(201).filter((name) => !there.has(name)),
    [],
  )
  assert.equal(creates.ended(201, 503, 504).length, creates.ends.size)
}

/** Every verb is rejected, at once and with the reason. */
async function checkRefusals(api: EventApiUnderTest, reason: RegExp): Promise<void> {
  for (const [verb, call] of Object.entries(verbs)) {
    const { status, headers, json, ms } = await timed(api, call)
    assert.deepEqual([status, headers['retry-after']], [503, '1'], verb)
    assert.equal(json.reason, 'ServiceUnavailable', verb)
    assert.match(json.message, /^etcd has not responded for \d+ s: .*; nothing was done$/, verb)
    assert.match(json.message, reason, verb)
    assert.ok(ms < refusalMsMax, `${verb} was refused after ${ms} ms`)
  }
}

/** Reads that need not be consistent are served all the time. */
async function checkMemoryServes(api: EventApiUnderTest, before: string): Promise<void> {
  const query = { resourceVersion: 0 }
  assert.equal((await api.call({ at: 'a/old', query })).json.metadata.name, 'old')
  assert.equal((await api.call({ at: 'a', query })).json.items.length, 1)
  await using late = await api.watch('a', { resourceVersion: before })
  await eventually('a watch from memory', () => late.received.includes('ADDED old'))
}

interface Outage {
  readonly members: number
  /** The reason in the Status, once etcd has been unavailable for some time. */
  readonly reason: RegExp
  /** The test can still reach etcd directly, so changes can be made during the fault. */
  readonly isCutOff?: true
  readonly backWithinMs: number
  begin(etcd: EtcdCluster, proxy: FaultProxy): Promise<void> | void
  end(etcd: EtcdCluster, proxy: FaultProxy): Promise<void> | void
}

const outages: Readonly<Record<string, Outage>> = {
  killed: {
    members: 1,
    reason: /it cannot be reached/,
    backWithinMs: 4_000,
    begin: (etcd) => etcd.member(0).kill(),
    end: (etcd) => etcd.member(0).start(),
  },
  paused: {
    members: 1,
    reason: /it is connected but does not respond/,
    backWithinMs: 2_500,
    begin: (etcd) => etcd.member(0).pause(),
    end: (etcd) => etcd.member(0).resume(),
  },
  'two of three members killed': {
    members: 3,
    reason: /it has no leader: too few of its members are up/,
    backWithinMs: 5_000,
    begin: async (etcd) => {
      await Promise.all([etcd.member(0).kill(), etcd.member(1).kill()])
    },
    end: async (etcd) => {
      await Promise.all([etcd.member(0).start(), etcd.member(1).start()])
    },
  },
  'cut off': {
    members: 1,
    reason: /it cannot be reached/,
    isCutOff: true,
    backWithinMs: 4_000,
    begin: (_etcd, proxy) => proxy.set('refuse'),
    end: (_etcd, proxy) => proxy.set('pass'),
  },
  'packets dropped silently': {
    members: 1,
    reason: /it is connected but does not respond|it cannot be reached/,
    isCutOff: true,
    // A connection that drops packets is detected after 8 s.
    backWithinMs: 9_000,
    begin: (_etcd, proxy) => proxy.set('blackhole'),
    end: (_etcd, proxy) => proxy.set('pass'),
  },
}

/** These run in parallel, since they mostly wait. */
describe('the API while etcd does not respond', { concurrency: true }, () => {
  for (const [name, outage] of Object.entries(outages)) {
    test(`${name}: requests are rejected soon, then at once; the cache serves; all recovers without help`, async (t) => {
      await using etcd = await startEtcdCluster(outage.members)
      await using proxy = await FaultProxy.start(etcd.endpoints[0] ?? '')
      const endpoints = outage.isCutOff ? [`http://${proxy.address}`] : etcd.endpoints
      const lines: [string, LogFields | undefined][] = []
      const note = (text: string, fields?: LogFields) => lines.push([text, fields])
      const availabilityLog = { ...silentLog, info: note, warn: note }
      await using api = await EventApiUnderTest.start(endpoints, { availabilityLog })
      const before = (await api.call({ at: 'a' })).json.metadata.resourceVersion
      await api.call({ method: 'POST', at: 'a', body: makeEvent('a', 'old') })
      await using watched = await api.watchFromNow('a')
      await using creates = new Creates(api)
      await pause(500)

      await outage.begin(etcd, proxy)
      const first = await Promise.all([timed(api, { at: 'a' }), timed(api, { at: 'a/old' })])
      for (const { status, ms } of first) {
        assert.equal(status, 503)
        assert.ok(ms < firstAnswerMsMax, `the first read took ${ms} ms`)
      }
      assert.ok(api.availability.isUnavailable)
      await pause(1_500)
      await checkRefusals(api, outage.reason)
      await checkMemoryServes(api, before)

      if (outage.isCutOff) {
        await using other = await EventApiUnderTest.start(etcd.endpoints)
        const meanwhile = { method: 'POST', at: 'a', body: makeEvent('a', 'meanwhile') }
        assert.equal((await other.call(meanwhile)).status, 201)
      }
      await outage.end(etcd, proxy)
      const backAt = performance.now()
      await eventually('reads', async () => (await api.call({ at: 'a' })).status === 200, 15_000)
      const backMs = performance.now() - backAt
      const after = { method: 'POST', at: 'a', body: makeEvent('a', 'after') }
      assert.equal((await api.call(after)).status, 201)
      await pause(500)
      await creates.stop()
      t.diagnostic(
        `recovered after ${Math.round(backMs)} ms; slowest write ${Math.round(creates.msMax)}`,
      )
      assert.ok(backMs < outage.backWithinMs, `back after ${backMs} ms`)
      assert.ok(creates.msMax < firstAnswerMsMax, `a write took ${creates.msMax} ms`)

      await checkHonesty(api, creates)
      const made = outage.isCutOff ? ['ADDED meanwhile', 'ADDED after'] : ['ADDED after']
      await eventually('the watch continues', () => watched.received.length === made.length)
      assert.deepEqual(watched.received, made)
      assert.deepEqual(
        lines.map(([text]) => text),
        [
          'etcd does not respond: writes and consistent reads are rejected until it does; watches and reads with resourceVersion=0 continue',
          'etcd responds again',
        ],
      )
      assert.ok(Number(lines[1]?.[1]?.['seconds']) > 4, JSON.stringify(lines))
      assert.deepEqual([api.availability.outages, api.availability.outageMs], [1, 0])
    })
  }
})

describe('the API while some members of etcd do not respond, or seem not to', () => {
  test('no request is rejected while one of three members is killed and then another is paused', async () => {
    await using etcd = await startEtcdCluster(3)
    await using api = await EventApiUnderTest.start(etcd.endpoints)
    await using creates = new Creates(api)
    let isOver = false
    const reads: Timed[] = []
    const reading = (async () => {
      while (!isOver) {
        reads.push(await timed(api, { at: 'load', query: { limit: 1 } }))
        await pause(20)
      }
    })()
    for (const index of [await leaderOf(api, etcd), undefined]) {
      const leader = index ?? (await leaderOf(api, etcd))
      const member = etcd.member(leader)
      if (index === undefined) member.pause()
      else await member.kill()
      await pause(6_000)
      if (index === undefined) member.resume()
      else await member.start()
      await pause(1_500)
    }
    isOver = true
    await Promise.all([reading, creates.stop()])
    assert.deepEqual(new Set(reads.map(({ status }) => status)), new Set([200]))
    assert.deepEqual([creates.ended(503), api.availability.outages], [[], 0])
    assert.ok(creates.ended(201).length > 100)
    await checkHonesty(api, creates)
  })

  test('a pause of this process is not taken for an outage of etcd', async () => {
    await using etcd = await startEtcd()
    await using api = await EventApiUnderTest.start(etcd.endpoints)
    assert.equal((await api.call({ at: 'a' })).status, 200)
    // Blocks this process, with its timers and sockets.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 7_000)
    const { status, ms } = await timed(api, { at: 'a' })
    assert.equal(status, 200)
    assert.ok(ms < 2_000, `${ms} ms`)
    await pause(1_000)
    assert.equal(api.availability.outages, 0)
  })

  test('without etcd at start requests are rejected at once, and the cache fills when etcd is up', async () => {
    await using etcd = await startEtcd()
    await etcd.member(0).stop()
    const starting = EventApiUnderTest.start(etcd.endpoints)
    await pause(6_000)
    await etcd.member(0).start()
    const begun = performance.now()
    await using api = await starting
    assert.ok(performance.now() - begun < 4_000, 'the cache took too long to fill')
    assert.equal(api.availability.outages, 1)
    await eventually('reads', async () => (await api.call({ at: '' })).status === 200)
  })
})

async function leaderOf(api: EventApiUnderTest, { endpoints }: EtcdCluster): Promise<number> {
  const members = await Promise.all(endpoints.map((endpoint) => api.client.status(endpoint)))
  return members.findIndex(({ memberId, leader }) => memberId === leader)
}
