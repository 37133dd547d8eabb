import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CallOptions, KeyValue, Txn, TxnOpResult, TxnResult } from '../../etcd/client.ts'
import { EtcdError, type EtcdErrorDetails } from '../../etcd/errors.ts'
import { StorageError } from '../errors.ts'
import { OwnWrites } from '../own-writes.ts'
import { formatVersion } from '../resource-version.ts'
import { prepareValue } from '../stored-form.ts'
import type { Outcome } from './batch-txn.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'

/** A transaction in flight, whose response the test sends. */
interface Sent {
  readonly keys: readonly string[]
  readonly txn: Txn
  readonly options: CallOptions
  readonly resolve: (result: TxnResult) => void
  readonly reject: (error: Error) => void
}

/** A group commit with a fake etcd and a fake clock. */
class Bench {
  readonly sent: Sent[] = []
  readonly clock = { at: 0, now: (): number => this.clock.at }
  readonly commits: GroupCommit
  #revision = 100

  constructor(options?: Partial<GroupCommitOptions>) {
    this.commits = new GroupCommit({
      client: {
        txn: (txn, callOptions = {}) =>
          new Promise((resolve, reject) => {
            this.sent.push({ txn, options: callOptions, keys: keysOf(txn), resolve, reject })
          }),
      },
      clock: this.clock,
      now: () => 1_000,
      ...options,
    })
  }

  create(key: string, bytes = 10): Promise<string> {
    return resultOf(this.commits.submit({ key, expected: 0, value: preparedOf(bytes) }))
  }

  delete(key: string, expected = 50): Promise<string> {
    return resultOf(this.commits.submit({ key, expected, value: undefined }))
  }

  creates(count: number, bytes?: number): Promise<string>[] {
    return Array.from({ length: count }, (_, index) => this.create(`k${index}`, bytes))
  }

  /** The oldest transaction in flight, after the queue was sent. */
  async next(): Promise<Sent> {
    await tick()
    return this.sent.shift() ?? assert.fail('nothing was sent')
  }

  /** Applies the oldest transaction in flight, except operations on a key in `refused`. */
  async commit(refused: Readonly<Record<string, KeyValue | undefined>> = {}): Promise<Sent> {
    const sent = await this.next()
    this.#revision++
    const results = sent.keys.map((key): TxnOpResult => {
      const isRefused = key in refused
      const kv = refused[key]
      const kvs = kv === undefined ? [] : [kv]
      const read = { type: 'range' as const, revision: 0, kvs, more: false, count: kvs.length }
      return { type: 'txn', succeeded: !isRefused, results: isRefused ? [read] : [] }
    })
    const [only] = results
    const isPlain = sent.txn.compare !== undefined && only?.type === 'txn'
    sent.resolve({
      revision: this.#revision,
      succeeded: isPlain ? only.succeeded : true,
      results: isPlain ? only.results : results,
    })
    return sent
  }

  async fail(details: Omit<EtcdErrorDetails, 'message'>): Promise<Sent> {
    const sent = await this.next()
    sent.reject(new EtcdError({ message: 'from etcd', ...details }))
    return sent
  }
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function preparedOf(bytes: number): ReturnType<typeof prepareValue> {
  return prepareValue(Buffer.from(`{"metadata":{},"note":"${'x'.repeat(bytes)}"}`))
}

/** The result as text, so that a rejection before the await is not an unhandled one. */
function resultOf(submitted: Promise<Outcome>): Promise<string> {
  return submitted.then(
    (outcome) =>
      outcome.applied
        ? `applied ${formatVersion(outcome.version)}`
        : `refused ${outcome.current?.value ?? 'nothing there'}`,
    (error: unknown) => {
      assert.ok(error instanceof StorageError, String(error))
      return error.kind
    },
  )
}

function keysOf(txn: Txn): readonly string[] {
  if (txn.compare !== undefined) return txn.compare.map(({ key }) => String(key))
  return (txn.success ?? []).flatMap((op) => (op.type === 'txn' ? keysOf(op) : []))
}

function kv(value: string): KeyValue {
  const key = Buffer.from('k')
  const revisions = { createRevision: 1, modRevision: 7, version: 2, lease: 0n }
  return { key, value: Buffer.from(value), ...revisions }
}

describe('group commit: batches', () => {
  test('writes of one event-loop tick share a transaction, and each put has its index', async () => {
    const bench = new Bench()
    const all = [bench.create('a'), bench.delete('b'), bench.create('c')]
    const { txn, keys, options } = await bench.commit()
    assert.deepEqual(keys, ['a', 'b', 'c'])
    assert.equal(txn.compare, undefined)
    assert.equal(options.timeoutMs, 3_000)
    assert.deepEqual(await Promise.all(all), ['applied 101000', 'applied 101001', 'applied 101002'])
    const [, , third] = txn.success ?? []
    const [put] = (third?.type === 'txn' && third.success) || []
    assert.match(String(put?.type === 'put' && put.value), /^\{"w":1000,"i":2\}\n\{"metadata"/)
  })

  test('a single write is a plain transaction', async () => {
    const bench = new Bench()
    const created = bench.create('a')
    const { txn } = await bench.commit()
    assert.deepEqual(txn.compare, [{ key: Buffer.from('a'), target: 'modRevision', to: 0 }])
    assert.deepEqual(
      [txn.success, txn.failure].map((ops) => ops?.map(({ type }) => type)),
      [['put'], ['range']],
    )
    assert.equal(await created, 'applied 101000')
  })

  test('a batch with puts has a put in its failure branch, for the quota check of etcd', async () => {
    const bench = new Bench()
    const mixed = [bench.delete('a'), bench.create('b'), bench.create('c')]
    const { txn } = await bench.commit()
    assert.deepEqual(txn.failure, [{ type: 'put', key: Buffer.from('b'), value: Buffer.alloc(0) }])
    const deletes = [bench.delete('a'), bench.delete('b')]
    assert.deepEqual((await bench.commit()).txn.failure, [])
    await Promise.all([...mixed, ...deletes])
  })

  test('at most two transactions are in flight; other writes are batched by a hundred', async () => {
    const bench = new Bench()
    const first = bench.create('first')
    await tick()
    const second = bench.create('second')
    await tick()
    const rest = bench.creates(150)
    await tick()
    assert.equal(bench.sent.length, 2)
    assert.equal(bench.commits.waiting.operations, 150)
    await bench.commit()
    await first
    await tick()
    assert.deepEqual(
      bench.sent.map(({ keys }) => keys.length),
      [1, 100],
    )
    await bench.commit()
    assert.equal((await bench.commit()).keys.length, 100)
    assert.equal((await bench.commit()).keys.length, 50)
    await Promise.all([second, ...rest])
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
  })

  test('a transaction stays below 1 MiB unless a single operation is larger', async () => {
    const bench = new Bench()
    const all = [...bench.creates(5, 300_000), bench.create('huge', 1_200_000), bench.create('z')]
    const sizes: number[] = []
    for (let count = 0; count < 4; count++) sizes.push((await bench.commit()).keys.length)
    assert.deepEqual(sizes, [3, 2, 1, 1])
    await Promise.all(all)
  })

  test('without grouping each write is sent in its own transaction, concurrently', async () => {
    const bench = new Bench({ grouped: false })
    const all = bench.creates(3)
    await tick()
    assert.deepEqual(
      bench.sent.map(({ keys }) => keys.length),
      [1, 1, 1],
    )
    for (let count = 0; count < 3; count++) await bench.commit()
    await Promise.all(all)
  })

  test('onCommit gets the number of operations of each transaction', async () => {
    const sizes: number[] = []
    const bench = new Bench({ onCommit: (operations) => sizes.push(operations) })
    const all = bench.creates(3)
    await bench.commit()
    await Promise.all(all)
    assert.deepEqual(sizes, [3])
  })
})

describe('group commit: order', () => {
  test('a key is in flight once, and its queued writes keep their order', async () => {
    const bench = new Bench()
    const all = [bench.create('a'), bench.create('b'), bench.delete('a', 1), bench.create('a')]
    const ends: number[] = []
    for (const [index, one] of all.entries()) void one.then(() => ends.push(index))
    assert.deepEqual((await bench.commit()).keys, ['a', 'b'])
    const second = await bench.commit()
    assert.deepEqual(second.keys, ['a'])
    assert.equal(second.txn.success?.[0]?.type, 'delete')
    assert.deepEqual((await bench.commit({ a: kv('x') })).keys, ['a'])
    await Promise.all(all)
    assert.deepEqual(ends, [0, 1, 2, 3])
  })

  test('the next write on a key is not sent before the one in flight has ended', async () => {
    const bench = new Bench()
    const first = bench.create('a')
    const sent = await bench.next()
    const second = bench.delete('a')
    await tick()
    assert.equal(bench.sent.length, 0)
    sent.reject(new EtcdError({ kind: 'timeout', message: 'late', mayHaveBeenApplied: true }))
    assert.equal(await first, 'timeout')
    await bench.commit()
    assert.match(await second, /^applied/)
  })
})

describe('group commit: how operations end', () => {
  test('refused operations get the current value, the others are applied', async () => {
    const bench = new Bench()
    const all = [bench.delete('a'), bench.create('b'), bench.delete('c'), bench.create('d')]
    await bench.commit({ a: undefined, b: kv('theirs') })
    assert.deepEqual(await Promise.all(all), [
      'refused nothing there',
      'refused theirs',
      'applied 101000',
      'applied 101003',
    ])
  })

  test('a missing response leaves all results unknown, and nothing is retried', async () => {
    const bench = new Bench()
    const all = bench.creates(3)
    await bench.fail({ kind: 'unavailable', mayHaveBeenApplied: true })
    assert.deepEqual(await Promise.all(all), ['timeout', 'timeout', 'timeout'])
    await tick()
    assert.equal(bench.sent.length, 0)
  })

  test('a malformed response leaves all results unknown', async () => {
    const bench = new Bench()
    const all = bench.creates(2)
    const sent = await bench.next()
    sent.resolve({ revision: 5, succeeded: true, results: [] })
    assert.deepEqual(await Promise.all(all), ['timeout', 'timeout'])
  })

  test('operations that were certainly not applied are retried in order, with new indexes', async () => {
    const bench = new Bench()
    const first = bench.creates(3)
    const sent = await bench.next()
    const later = bench.create('later')
    await tick()
    sent.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    await bench.commit()
    assert.deepEqual((await bench.commit()).keys, ['k0', 'k1', 'k2'])
    assert.deepEqual(await Promise.all([...first, later]), [
      'applied 102000',
      'applied 102001',
      'applied 102002',
      'applied 101000',
    ])
  })

  test('an operation past its deadline fails without being applied', async () => {
    const bench = new Bench()
    const early = bench.create('early')
    bench.clock.at = 4_000
    const late = bench.create('late')
    const sent = await bench.next()
    bench.clock.at = 6_000
    sent.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    assert.equal(await early, 'unavailable')
    assert.deepEqual((await bench.commit()).keys, ['late'])
    assert.match(await late, /^applied/)
  })

  test('a batch that is too large is retried one by one; a too large operation fails', async () => {
    for (const kind of ['too-large', 'invalid'] as const) {
      const bench = new Bench()
      const all = bench.creates(2)
      await bench.fail({ kind })
      assert.deepEqual((await bench.fail({ kind: 'too-large' })).keys, ['k0'])
      assert.deepEqual((await bench.commit()).keys, ['k1'])
      assert.deepEqual(await Promise.all(all), ['too-large', 'applied 101000'])
    }
  })

  test('too many requests from etcd fails with overloaded', async () => {
    const bench = new Bench()
    const all = bench.creates(2)
    await bench.fail({ kind: 'too-many-requests' })
    assert.deepEqual(await Promise.all(all), ['overloaded', 'overloaded'])
  })

  test('puts are rejected unsent and deletes continue while etcd is full', async () => {
    const alarm = { isFull: false }
    const refusal = () =>
      alarm.isFull ? new StorageError({ kind: 'unavailable', message: 'full' }) : undefined
    const onFull = () => {
      alarm.isFull = true
    }
    const bench = new Bench({ quotaAlarm: { refusal, onFull } })
    const mixed = () => [bench.create('a'), bench.delete('b'), bench.delete('c'), bench.create('d')]
    const first = mixed()
    const sent = await bench.next()
    // These arrive before the alarm is known, some of them on keys that are in flight.
    const second = [...mixed(), bench.delete('e')]
    await tick()
    const together = await bench.next()
    assert.deepEqual(together.keys, ['e'])
    sent.reject(new EtcdError({ kind: 'no-space', message: 'from etcd', mayHaveBeenApplied: true }))
    assert.deepEqual(await Promise.all(first), ['timeout', 'timeout', 'timeout', 'timeout'])
    assert.deepEqual((await bench.commit()).keys, ['b', 'c'])
    together.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    assert.deepEqual((await bench.commit()).keys, ['e'])
    assert.deepEqual(await Promise.all(second), [
      'unavailable',
      'applied 101000',
      'applied 101001',
      'unavailable',
      'applied 102000',
    ])
    assert.equal(await bench.create('f'), 'unavailable')
    alarm.isFull = false
    const third = mixed()
    assert.equal((await bench.commit()).keys.length, 4)
    await Promise.all(third)
  })
})

describe('group commit: limits and close', () => {
  test('a full queue rejects at once, with a retry hint', async () => {
    const byCount = new Bench({ waitingOperationsMax: 3 })
    assert.equal(await Promise.race(byCount.creates(4)), 'overloaded')
    const byBytes = new Bench({ waitingBytesMax: 2_000 })
    assert.equal(await Promise.race(byBytes.creates(4, 500)), 'overloaded')
    const { commits } = new Bench({ waitingOperationsMax: 0 })
    await assert.rejects(
      commits.submit({ key: 'a', expected: 0, value: undefined }),
      (error) => error instanceof StorageError && error.retryAfterMs === 1_000,
    )
  })

  test('operations in flight do not count as queued', async () => {
    const bench = new Bench({ waitingOperationsMax: 3 })
    const first = bench.creates(3)
    await tick()
    const more = [bench.create('x'), bench.create('y')]
    await bench.commit()
    await bench.commit()
    for (const end of await Promise.all([...first, ...more])) assert.match(end, /^applied/)
  })

  test('close rejects new operations and resolves when all accepted ones have ended', async () => {
    const bench = new Bench()
    const all = bench.creates(150)
    let isClosed = false
    const closing = bench.commits.close().then(() => {
      isClosed = true
    })
    assert.equal(await bench.create('late'), 'unavailable')
    await bench.commit()
    await tick()
    assert.equal(isClosed, false)
    await bench.commit()
    await closing
    for (const end of await Promise.all(all)) assert.match(end, /^applied/)
    await bench.commits.close()
  })
})

/** The availability of etcd, set by the test. */
class FakeAvailability {
  outageSignal = new AbortController().signal
  #isDown = false
  #run = () => {}

  onOutage(run: () => void): void {
    this.#run = run
  }

  refusal(): StorageError | undefined {
    return this.#isDown ? new StorageError({ kind: 'unavailable', message: 'down' }) : undefined
  }

  setDown(isDown: boolean): void {
    this.#isDown = isDown
    if (isDown) this.#run()
  }
}

describe('group commit: while etcd is unavailable', () => {
  test('queued and new operations are rejected at once; sent ones are awaited', async () => {
    const availability = new FakeAvailability()
    const bench = new Bench({ availability, grouped: false })
    const sent = bench.creates(256)
    await tick()
    const waiting = [bench.create('w'), bench.delete('x')]
    availability.setDown(true)
    assert.deepEqual(await Promise.all(waiting), ['unavailable', 'unavailable'])
    assert.equal(await bench.create('y'), 'unavailable')
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
    assert.equal(bench.sent[0]?.options.cancelIfSafe, availability.outageSignal)
    await bench.commit()
    assert.equal(await sent[0], 'applied 101000')
    assert.equal(bench.sent.length, 255)
  })

  test('a sent operation that was certainly not applied is not retried', async () => {
    const availability = new FakeAvailability()
    const bench = new Bench({ availability })
    const first = bench.create('a')
    await tick()
    const second = bench.create('a')
    availability.setDown(true)
    await bench.fail({ kind: 'unavailable', mayHaveBeenApplied: false })
    assert.deepEqual(await Promise.all([first, second]), ['unavailable', 'unavailable'])
    await tick()
    assert.equal(bench.sent.length, 0)
  })

  test('writes succeed after an outage', async () => {
    const availability = new FakeAvailability()
    const bench = new Bench({ availability })
    availability.setDown(true)
    assert.equal(await bench.create('a'), 'unavailable')
    availability.setDown(false)
    const created = bench.create('a')
    await bench.commit()
    assert.equal(await created, 'applied 101000')
  })

  test('operations whose connections are lost end as outdated, the others are retried', async () => {
    const bench = new Bench()
    const seen = (key: string, connectionMax: number) =>
      bench.commits.submit({ key, expected: 50, value: undefined, connectionMax })
    const outdated = [seen('old', 3), seen('older', 2)]
    const created = bench.create('new')
    const sent = await bench.next()
    assert.equal(sent.options.connectionMax, 2)
    sent.reject(new EtcdError({ kind: 'outdated', message: 'gone' }))
    for (const operation of outdated) {
      const outcome = await operation
      assert.equal(!outcome.applied && outcome.isOutdated, true)
    }
    const again = await bench.commit()
    assert.deepEqual([again.keys, again.options.connectionMax], [['new'], undefined])
    await created
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
  })
})

describe('group commit: own writes', () => {
  const body = Buffer.from('{"metadata":{"name":"a"}}')
  const own = (bench: Bench, key: string): Promise<string> => {
    const value = prepareValue(body, { metadata: { name: 'a' } })
    return resultOf(bench.commits.submit({ key, expected: 0, value }))
  }

  test('are known while they are in flight, and afterwards if they were applied', async () => {
    const ownWrites = new OwnWrites()
    const bench = new Bench({ ownWrites })
    const all = [own(bench, 'early'), own(bench, 'late'), own(bench, 'refused')]
    assert.equal(ownWrites.size, 0)
    await tick()
    assert.notEqual(ownWrites.take('early', body), undefined)
    await bench.commit({ refused: kv('other') })
    await Promise.all(all)
    assert.equal(ownWrites.take('refused', body), undefined)
    assert.notEqual(ownWrites.take('late', body), undefined)
    assert.equal(ownWrites.size, 0)
  })

  test('are forgotten when they fail, and known again when they are retried', async () => {
    const ownWrites = new OwnWrites()
    const bench = new Bench({ ownWrites })
    const created = own(bench, 'a')
    await bench.fail({ kind: 'unavailable', mayHaveBeenApplied: false })
    await bench.fail({ kind: 'timeout', mayHaveBeenApplied: true })
    assert.equal(await created, 'timeout')
    assert.equal(ownWrites.size, 0)
    const again = own(bench, 'a')
    await bench.fail({ kind: 'unavailable', mayHaveBeenApplied: false })
    await bench.commit()
    assert.equal(await again, 'applied 101000')
    assert.notEqual(ownWrites.take('a', body), undefined)
  })
})
