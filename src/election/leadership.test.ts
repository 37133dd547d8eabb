import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import type {
  KeyValue,
  LeaseGrant,
  RangeResult,
  Txn,
  TxnResult,
  Watch,
  WatchRequest,
} from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { type LogFields, silentLog } from '../lib/log/log.ts'
import { Leadership } from './leadership.ts'
import type { Term } from './term.ts'

const time = { now: 0 }

async function settle(): Promise<void> {
  for (let tick = 0; tick < 6; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** Advances in small steps, so that the effects of one timer can set the next. */
async function advance(ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    time.now += 50
    mock.timers.tick(50)
    await settle()
  }
}

/** An etcd with one key and its leases, on the same clock as the replicas. */
class OneKeyEtcd {
  revision = 10
  held: { readonly lease: bigint; readonly value: string; readonly revision: number } | undefined
  readonly leases = new Map<bigint, { endsAt: number; readonly ttlMs: number }>()
  readonly watching = new Set<() => void>()
  #lastLease = 0n

  free(): void {
    if (this.held === undefined) return
    this.held = undefined
    this.revision++
    for (const wake of this.watching) wake()
  }

  expire(): void {
    for (const [id, { endsAt }] of this.leases) if (endsAt <= time.now) this.end(id)
  }

  end(id: bigint): void {
    this.leases.delete(id)
    if (this.held?.lease === id) this.free()
  }

  grant(ttlSeconds: number): LeaseGrant {
    const id = ++this.#lastLease
    const ttlMs = ttlSeconds * 1000
    this.leases.set(id, { endsAt: time.now + ttlMs, ttlMs })
    return { id, ttlSeconds }
  }
}

type Method = 'range' | 'txn' | 'grantLease' | 'keepLeaseAlive' | 'revokeLease'

/** A replica's connection to that etcd, which can delay or lose requests and responses. */
class Link {
  readonly calls: Method[] = []
  /** These run before the request arrives, and before the response does. */
  before: (method: Method) => Promise<void> = async () => {}
  after: (method: Method) => Promise<void> = async () => {}
  readonly #etcd: OneKeyEtcd

  constructor(etcd: OneKeyEtcd) {
    this.#etcd = etcd
  }

  range(): Promise<RangeResult> {
    return this.#call('range', () => {
      const { held, revision } = this.#etcd
      const kv =
        held &&
        ({
          lease: held.lease,
          modRevision: held.revision,
          value: Buffer.from(held.value),
        } as KeyValue)
      return { revision, kvs: kv === undefined ? [] : [kv], more: false, count: 0 }
    })
  }

  txn(txn: Txn): Promise<TxnResult> {
    return this.#call('txn', () => {
      const [put] = txn.success ?? []
      assert.ok(put?.type === 'put' && put.lease !== undefined)
      const succeeded = this.#etcd.held === undefined || this.#etcd.held.lease === 0n
      if (succeeded) {
        const revision = ++this.#etcd.revision
        this.#etcd.held = { lease: put.lease, value: put.value.toString(), revision }
      }
      return { revision: this.#etcd.revision, succeeded, results: [] }
    })
  }

  grantLease(ttlSeconds: number): Promise<LeaseGrant> {
    return this.#call('grantLease', () => this.#etcd.grant(ttlSeconds))
  }

  keepLeaseAlive(id: bigint): Promise<number> {
    return this.#call('keepLeaseAlive', () => {
      const lease = this.#etcd.leases.get(id)
      if (lease === undefined) return 0
      lease.endsAt = time.now + lease.ttlMs
      return lease.ttlMs / 1000
    })
  }

  revokeLease(id: bigint): Promise<void> {
    return this.#call('revokeLease', () => this.#etcd.end(id))
  }

  watch(request: WatchRequest): Watch {
    const etcd = this.#etcd
    return {
      connection: 0,
      requestProgress: () => {},
      async *[Symbol.asyncIterator]() {
        const { signal } = request
        const woken = Promise.withResolvers<void>()
        etcd.watching.add(woken.resolve)
        signal.addEventListener('abort', () => woken.resolve())
        await woken.promise
        etcd.watching.delete(woken.resolve)
        const kv = {} as KeyValue
        if (!signal.aborted) yield { revision: 0, events: [{ type: 'delete', kv, prevKv: kv }] }
      },
    }
  }

  async #call<T>(method: Method, respond: () => T): Promise<T> {
    this.calls.push(method)
    await this.before(method)
    this.#etcd.expire()
    const result = respond()
    await this.after(method)
    return result
  }
}

const full = () => new EtcdError({ kind: 'no-space', message: 'space exceeded' })
const lost = () =>
  new EtcdError({ kind: 'timeout', message: 'no response', mayHaveBeenApplied: true })

function start(
  etcd: OneKeyEtcd,
  replica: string,
  before?: Link['before'],
  {
    settings,
    worksWhenFull = true,
    isStandby,
  }: { settings?: string; worksWhenFull?: boolean; isStandby?: boolean } = {},
) {
  const warnings: LogFields[] = []
  const link = new Link(etcd)
  link.before = before ?? link.before
  const ending = new AbortController()
  const leadership = new Leadership({
    client: link as unknown as ConstructorParameters<typeof Leadership>[0]['client'],
    key: '/t/sweeper',
    replica,
    clock: { now: () => time.now },
    log: { ...silentLog, warn: (msg, fields) => warnings.push({ msg, ...fields }) },
    leaseTtlSeconds: 5,
    task: 'works',
    worksWhenFull,
    isStandby,
    settings: settings === undefined ? undefined : { text: settings, warning: 'settings differ' },
  })
  const terms: Term[] = []
  let finishWork = Promise.resolve()
  const running = leadership.run(async (term) => {
    terms.push(term)
    if (!term.signal.aborted) {
      await new Promise<void>((resolve) => term.signal.addEventListener('abort', () => resolve()))
    }
    await finishWork
  }, ending.signal)
  return {
    link,
    leadership,
    terms,
    warnings,
    /** Makes work continue after its term until the promise resolves. */
    holdWork: (until: Promise<void>) => {
      finishWork = until
    },
    end: async () => {
      ending.abort()
      await advance(200)
      await running
    },
    stop: () => ending.abort(),
    running,
  }
}

/** Advances the time of etcd as well. */
async function advanceWith(etcd: OneKeyEtcd, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 50) {
    await advance(50)
    etcd.expire()
    await settle()
  }
}

describe('leadership', () => {
  beforeEach(() => {
    time.now = 1_000
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  test('lets a standby replica lead only while no other wants to', async () => {
    const etcd = new OneKeyEtcd()
    const standby = start(etcd, 'standby', undefined, { isStandby: true })
    await advanceWith(etcd, 14_000)
    assert.equal(etcd.held?.value, undefined)
    const other = start(etcd, 'other')
    await advanceWith(etcd, 30_000)
    assert.equal(etcd.held?.value, 'other')
    await other.end()
    await advanceWith(etcd, 16_000)
    assert.equal(etcd.held?.value, 'standby', 'nobody else has led for three lease times')
    const late = start(etcd, 'late')
    await advanceWith(etcd, 290_000)
    assert.equal(etcd.held?.value, 'standby')
    await advanceWith(etcd, 15_000)
    assert.equal(etcd.held?.value, 'late', 'its term is over')
    await Promise.all([standby.end(), late.end()])
  })

  test('elects the first replica while the others wait', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await settle()
    const b = start(etcd, 'b')
    await advanceWith(etcd, 60_000)
    assert.deepEqual([a.leadership.termCount, b.leadership.termCount], [1, 0])
    assert.ok(a.leadership.term !== undefined)
    assert.equal(etcd.held?.value, 'a')
    assert.equal(a.terms[0]?.revision, etcd.held?.revision)
    assert.equal(etcd.leases.size, 1, 'a waiting replica has no lease')
    await Promise.all([a.end(), b.end()])
  })

  test('warns once when the settings differ from the leader’s', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a', undefined, { settings: '--ttl=1h' })
    await settle()
    const same = start(etcd, 'same', undefined, { settings: '--ttl=1h' })
    const other = start(etcd, 'other', undefined, { settings: '--ttl=2h' })
    await advanceWith(etcd, 60_000)
    assert.equal(etcd.held?.value, 'a --ttl=1h')
    assert.deepEqual(same.warnings, [])
    const msg = 'settings differ'
    assert.deepEqual(other.warnings, [{ msg, leader: 'a', there: '--ttl=1h', here: '--ttl=2h' }])
    await Promise.all([a.end(), same.end(), other.end()])
  })

  test('does not warn about a leader that publishes no settings', async () => {
    const etcd = new OneKeyEtcd()
    const old = start(etcd, 'old')
    await settle()
    const young = start(etcd, 'young', undefined, { settings: '--ttl=2h' })
    await advanceWith(etcd, 20_000)
    assert.equal(etcd.held?.value, 'old')
    assert.deepEqual(young.warnings, [])
    await Promise.all([old.end(), young.end()])
  })

  test('hands over as soon as the work of a stopping leader has ended', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await settle()
    const b = start(etcd, 'b')
    await advanceWith(etcd, 1_000)
    const work = Promise.withResolvers<void>()
    a.holdWork(work.promise)
    a.stop()
    await advanceWith(etcd, 500)
    assert.equal(a.leadership.term, undefined)
    assert.deepEqual([etcd.held?.value, b.leadership.termCount], ['a', 0])
    work.resolve()
    await advanceWith(etcd, 100)
    assert.equal(etcd.held?.value, 'b')
    assert.ok(b.leadership.term !== undefined)
    await Promise.all([a.running, b.end()])
    assert.equal(etcd.leases.size, 0)
  })

  test('ends the term of a leader cut off from etcd before another can be elected', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await settle()
    const b = start(etcd, 'b')
    await advanceWith(etcd, 7_000)
    a.link.before = async () => {
      throw lost()
    }
    let endedAt = 0
    let takenAt = 0
    for (let at = 0; at < 8_000; at += 50) {
      await advanceWith(etcd, 50)
      if (endedAt === 0 && a.leadership.term === undefined) endedAt = time.now
      if (takenAt === 0 && b.leadership.term !== undefined) takenAt = time.now
      assert.ok(a.leadership.term === undefined || b.leadership.term === undefined)
    }
    assert.ok(endedAt < takenAt && takenAt - endedAt < 500, `${endedAt} ${takenAt}`)
    assert.ok(a.terms[0]?.signal.aborted)
    await Promise.all([a.end(), b.end()])
  })

  test('counts the term from before the request, however late the response is', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await settle()
    const granted = a.leadership.term?.heldUntil
    assert.equal(granted, 1_000 + 4_750)
    // The renewal arrives at once; its response takes a second.
    const response = Promise.withResolvers<void>()
    let renewedAt = 0
    a.link.after = async (method) => {
      if (method !== 'keepLeaseAlive') return
      renewedAt = time.now
      await response.promise
    }
    await advanceWith(etcd, 2_500)
    response.resolve()
    await settle()
    assert.ok(renewedAt > 0 && time.now - renewedAt > 500)
    assert.equal(a.leadership.term?.heldUntil, renewedAt + 4_750)
    await a.end()
  })

  test('ends the term of a paused replica before any of its timers fires', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await advanceWith(etcd, 3_000)
    assert.ok(a.leadership.term !== undefined)
    time.now += 30_000
    assert.equal(a.leadership.term, undefined)
    assert.equal(a.terms[0]?.isHeld(), false)
    etcd.expire()
    const b = start(etcd, 'b')
    await settle()
    assert.ok(b.leadership.term !== undefined)
    await advanceWith(etcd, 3_000)
    assert.deepEqual([a.leadership.term, etcd.held?.value], [undefined, 'b'])
    await Promise.all([a.end(), b.end()])
  })

  test('does not begin to lead when paused between winning and the response', async () => {
    const etcd = new OneKeyEtcd()
    const response = Promise.withResolvers<void>()
    const a = start(etcd, 'a')
    a.link.after = async (method) => {
      if (method === 'txn') await response.promise
    }
    await settle()
    assert.equal(etcd.held?.value, 'a')
    time.now += 6_000
    response.resolve()
    await settle()
    assert.equal(a.leadership.term, undefined)
    await a.end()
  })

  test('leaves no lease behind after a campaign with an unknown result', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    let isFirst = true
    a.link.after = async (method) => {
      if (method !== 'txn' || !isFirst) return
      isFirst = false
      throw lost()
    }
    await advanceWith(etcd, 1_000)
    assert.ok(a.leadership.term !== undefined)
    assert.deepEqual([a.leadership.termCount, etcd.leases.size], [1, 1])
    assert.equal(a.terms[0]?.revision, etcd.held?.revision)
    await a.end()
  })

  test('ends the term when the key is replaced by hand, without blocking the next election', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a')
    await advanceWith(etcd, 3_000)
    const [first] = a.terms
    etcd.held = { lease: 0n, value: 'operator', revision: ++etcd.revision }
    await advanceWith(etcd, 3_000)
    assert.ok(first?.signal.aborted)
    assert.equal(etcd.held?.value, 'a')
    assert.equal(a.leadership.termCount, 2)
    await a.end()
  })

  test('finds a deletion that the watch misses by reading the key again', async () => {
    const etcd = new OneKeyEtcd()
    etcd.held = { lease: 99n, value: 'gone', revision: 5 }
    const a = start(etcd, 'a')
    await advanceWith(etcd, 2_000)
    etcd.held = undefined
    assert.equal(a.leadership.termCount, 0)
    await advanceWith(etcd, 4_000)
    assert.equal(a.leadership.termCount, 1)
    await a.end()
  })

  test('stops while etcd does not respond', async () => {
    const etcd = new OneKeyEtcd()
    const a = start(etcd, 'a', async () => {
      throw lost()
    })
    await advanceWith(etcd, 10_000)
    assert.equal(a.leadership.termCount, 0)
    assert.ok(a.link.calls.length < 20, `${a.link.calls.length} calls in ten seconds`)
    await a.end()
  })

  /** Rejects what a full etcd rejects: leases, or only the key. */
  function fullEtcd(rejected: Method) {
    const space = { isFree: false }
    const before = async (method: Method) => {
      if (method === rejected && !space.isFree) throw full()
    }
    return { space, before }
  }

  for (const rejected of ['grantLease', 'txn'] as const) {
    test(`lets all replicas work while a full etcd rejects ${rejected}, until one is elected`, async () => {
      const etcd = new OneKeyEtcd()
      const { space, before } = fullEtcd(rejected)
      const all = ['a', 'b'].map((name) => start(etcd, name, before))
      await advanceWith(etcd, 30_000)
      for (const { leadership, terms, warnings } of all) {
        assert.deepEqual([leadership.isWorkingWithoutLeader, leadership.term], [true, undefined])
        assert.equal(terms.length, 1, 'the work begins once')
        const [term = assert.fail()] = terms
        assert.deepEqual([term.isHeld(), term.revision], [true, 0])
        assert.ok(term.lateMs !== undefined && term.lateMs >= 0 && term.lateMs <= 10_000)
        assert.equal(warnings.length, 1)
      }
      assert.equal(etcd.leases.size, 0)
      space.isFree = true
      await advanceWith(etcd, 10_000)
      assert.equal(all.filter(({ leadership }) => leadership.term !== undefined).length, 1)
      assert.ok(all.every(({ leadership }) => !leadership.isWorkingWithoutLeader))
      const held = all.flatMap(({ terms }) => terms).filter((term) => term.isHeld())
      assert.deepEqual(
        held.map(({ revision, lateMs }) => ({ revision, lateMs })),
        [{ revision: etcd.held?.revision, lateMs: undefined }],
      )
      await Promise.all(all.map(({ end }) => end()))
    })
  }

  test('delays work that needs a leader while etcd is full', async () => {
    const etcd = new OneKeyEtcd()
    const { space, before } = fullEtcd('grantLease')
    const a = start(etcd, 'a', before, { worksWhenFull: false })
    await advanceWith(etcd, 30_000)
    assert.deepEqual([a.terms.length, a.leadership.isWorkingWithoutLeader], [0, false])
    space.isFree = true
    await advanceWith(etcd, 10_000)
    assert.deepEqual([a.terms.length, a.terms[0]?.lateMs], [1, undefined])
    await a.end()
  })

  test('continues to lead in a full etcd, and no other replica works', async () => {
    const etcd = new OneKeyEtcd()
    const { space, before } = fullEtcd('grantLease')
    space.isFree = true
    const a = start(etcd, 'a', before)
    await settle()
    const b = start(etcd, 'b', before)
    space.isFree = false
    await advanceWith(etcd, 30_000)
    assert.ok(a.leadership.term !== undefined)
    assert.equal(b.terms.length, 0)
    await a.end()
    await advanceWith(etcd, 1_000)
    assert.ok(b.leadership.isWorkingWithoutLeader)
    await b.end()
    assert.ok(!b.leadership.isWorkingWithoutLeader)
  })

  test('continues to work without an election during an outage', async () => {
    const etcd = new OneKeyEtcd()
    const { before } = fullEtcd('grantLease')
    const a = start(etcd, 'a', before)
    await advanceWith(etcd, 1_000)
    a.link.before = async () => {
      throw lost()
    }
    await advanceWith(etcd, 30_000)
    assert.deepEqual([a.leadership.isWorkingWithoutLeader, a.terms.length], [true, 1])
    await a.end()
  })
})
