import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CallOptions, KeyValue, Txn, TxnOpResult, TxnResult } from '../etcd/client.ts'
import { EtcdError, type EtcdErrorDetails } from '../etcd/errors.ts'
import type { Outcome } from './batch-txn.ts'
import { StorageError } from './errors.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'
import { formatVersion } from './resource-version.ts'
import { prepareValue } from './stored-form.ts'

/** A transaction under way, to be answered by the test. */
interface Sent {
  readonly keys: readonly string[]
  readonly txn: Txn
  readonly options: CallOptions
  readonly resolve: (result: TxnResult) => void
  readonly reject: (error: Error) => void
}

/** A group commit whose transactions the test answers, and a clock that it moves. */
class Bench {
  readonly sent: Sent[] = []
  readonly clock = { at: 0, now: (): number => this.clock.at }
  readonly commits: GroupCommit
  #revision = 100

  constructor(options?: Partial<GroupCommitOptions>) {
    this.commits = new GroupCommit({
      txn: (txn, callOptions) =>
        new Promise((resolve, reject) => {
          this.sent.push({ txn, options: callOptions, keys: keysOf(txn), resolve, reject })
        }),
      clock: this.clock,
      now: () => 1_000,
      ...options,
    })
  }

  create(key: string, bytes = 10): Promise<string> {
    return told(this.commits.submit({ key, expected: 0, value: preparedOf(bytes) }))
  }

  delete(key: string, expected = 50): Promise<string> {
    return told(this.commits.submit({ key, expected, value: undefined }))
  }

  creates(count: number, bytes?: number): Promise<string>[] {
    return Array.from({ length: count }, (_, index) => this.create(`k${index}`, bytes))
  }

  /** The oldest one under way, once those that can go have gone. */
  async next(): Promise<Sent> {
    await turn()
    return this.sent.shift() ?? assert.fail('nothing was sent')
  }

  /** Applies everything in the oldest one under way, but what touches a key in `refused`. */
  async answer(refused: Readonly<Record<string, KeyValue | undefined>> = {}): Promise<Sent> {
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
    sent.reject(new EtcdError({ message: 'as told', ...details }))
    return sent
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function preparedOf(bytes: number): ReturnType<typeof prepareValue> {
  return prepareValue(Buffer.from(`{"metadata":{},"note":"${'x'.repeat(bytes)}"}`))
}

/** In one word or two, so that a rejection nobody waits for yet is no trouble. */
function told(submitted: Promise<Outcome>): Promise<string> {
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

describe('group commit: what goes together', () => {
  test('what comes in one turn shares a transaction; each put carries its place', async () => {
    const bench = new Bench()
    const all = [bench.create('a'), bench.delete('b'), bench.create('c')]
    const { txn, keys, options } = await bench.answer()
    assert.deepEqual(keys, ['a', 'b', 'c'])
    assert.equal(txn.compare, undefined)
    assert.equal(options.timeoutMs, 3_000)
    assert.deepEqual(await Promise.all(all), ['applied 101000', 'applied 101001', 'applied 101002'])
    const [, , third] = txn.success ?? []
    const [put] = (third?.type === 'txn' && third.success) || []
    assert.match(String(put?.type === 'put' && put.value), /^\{"w":1000,"i":2\}\n\{"metadata"/)
  })

  test('one alone is a plain transaction', async () => {
    const bench = new Bench()
    const created = bench.create('a')
    const { txn } = await bench.answer()
    assert.deepEqual(txn.compare, [{ key: Buffer.from('a'), target: 'modRevision', to: 0 }])
    assert.deepEqual(
      [txn.success, txn.failure].map((ops) => ops?.map(({ type }) => type)),
      [['put'], ['range']],
    )
    assert.equal(await created, 'applied 101000')
  })

  test('etcd finds a put where it looks for one, in a branch that never runs', async () => {
    const bench = new Bench()
    const mixed = [bench.delete('a'), bench.create('b'), bench.create('c')]
    const { txn } = await bench.answer()
    assert.deepEqual(txn.failure, [{ type: 'put', key: Buffer.from('b'), value: Buffer.alloc(0) }])
    const deletes = [bench.delete('a'), bench.delete('b')]
    assert.deepEqual((await bench.answer()).txn.failure, [])
    await Promise.all([...mixed, ...deletes])
  })

  test('at most two transactions are under way; the rest gathers, a hundred at a time', async () => {
    const bench = new Bench()
    const first = bench.create('first')
    await turn()
    const second = bench.create('second')
    await turn()
    const rest = bench.creates(150)
    await turn()
    assert.equal(bench.sent.length, 2)
    assert.equal(bench.commits.waiting.operations, 150)
    await bench.answer()
    await first
    await turn()
    assert.deepEqual(
      bench.sent.map(({ keys }) => keys.length),
      [1, 100],
    )
    await bench.answer()
    assert.equal((await bench.answer()).keys.length, 100)
    assert.equal((await bench.answer()).keys.length, 50)
    await Promise.all([second, ...rest])
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
  })

  test('a transaction stays below 1 MiB, unless one operation alone does not', async () => {
    const bench = new Bench()
    const all = [...bench.creates(5, 300_000), bench.create('huge', 1_200_000), bench.create('z')]
    const sizes: number[] = []
    for (let count = 0; count < 4; count++) sizes.push((await bench.answer()).keys.length)
    assert.deepEqual(sizes, [3, 2, 1, 1])
    await Promise.all(all)
  })

  test('without grouping each goes by itself, side by side', async () => {
    const bench = new Bench({ grouped: false })
    const all = bench.creates(3)
    await turn()
    assert.deepEqual(
      bench.sent.map(({ keys }) => keys.length),
      [1, 1, 1],
    )
    for (let count = 0; count < 3; count++) await bench.answer()
    await Promise.all(all)
  })

  test('onCommit is told how many each transaction carried', async () => {
    const sizes: number[] = []
    const bench = new Bench({ onCommit: (operations) => sizes.push(operations) })
    const all = bench.creates(3)
    await bench.answer()
    await Promise.all(all)
    assert.deepEqual(sizes, [3])
  })
})

describe('group commit: order', () => {
  test('a key is under way once, and what waits for it goes in the order it came', async () => {
    const bench = new Bench()
    const all = [bench.create('a'), bench.create('b'), bench.delete('a', 1), bench.create('a')]
    const ends: number[] = []
    for (const [index, one] of all.entries()) void one.then(() => ends.push(index))
    assert.deepEqual((await bench.answer()).keys, ['a', 'b'])
    const second = await bench.answer()
    assert.deepEqual(second.keys, ['a'])
    assert.equal(second.txn.success?.[0]?.type, 'delete')
    assert.deepEqual((await bench.answer({ a: kv('x') })).keys, ['a'])
    await Promise.all(all)
    assert.deepEqual(ends, [0, 1, 2, 3])
  })

  test('the next on a key does not go before the one under way has ended', async () => {
    const bench = new Bench()
    const first = bench.create('a')
    const sent = await bench.next()
    const second = bench.delete('a')
    await turn()
    assert.equal(bench.sent.length, 0)
    sent.reject(new EtcdError({ kind: 'timeout', message: 'late', maybeApplied: true }))
    assert.equal(await first, 'timeout')
    await bench.answer()
    assert.match(await second, /^applied/)
  })
})

describe('group commit: how operations end', () => {
  test('refused ones get what is there now, the others are applied', async () => {
    const bench = new Bench()
    const all = [bench.delete('a'), bench.create('b'), bench.delete('c'), bench.create('d')]
    await bench.answer({ a: undefined, b: kv('theirs') })
    assert.deepEqual(await Promise.all(all), [
      'refused nothing there',
      'refused theirs',
      'applied 101000',
      'applied 101003',
    ])
  })

  test('an answer that is missing leaves everything unknown, and nothing is sent again', async () => {
    const bench = new Bench()
    const all = bench.creates(3)
    await bench.fail({ kind: 'unavailable', maybeApplied: true })
    assert.deepEqual(await Promise.all(all), ['timeout', 'timeout', 'timeout'])
    await turn()
    assert.equal(bench.sent.length, 0)
  })

  test('an answer that makes no sense leaves everything unknown', async () => {
    const bench = new Bench()
    const all = bench.creates(2)
    const sent = await bench.next()
    sent.resolve({ revision: 5, succeeded: true, results: [] })
    assert.deepEqual(await Promise.all(all), ['timeout', 'timeout'])
  })

  test('what certainly did not happen is sent again, in order, under its new place', async () => {
    const bench = new Bench()
    const first = bench.creates(3)
    const sent = await bench.next()
    const later = bench.create('later')
    await turn()
    sent.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    await bench.answer()
    assert.deepEqual((await bench.answer()).keys, ['k0', 'k1', 'k2'])
    assert.deepEqual(await Promise.all([...first, later]), [
      'applied 102000',
      'applied 102001',
      'applied 102002',
      'applied 101000',
    ])
  })

  test('but not for ever: past its time an operation fails, and did not happen', async () => {
    const bench = new Bench()
    const early = bench.create('early')
    bench.clock.at = 4_000
    const late = bench.create('late')
    const sent = await bench.next()
    bench.clock.at = 6_000
    sent.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    assert.equal(await early, 'unavailable')
    assert.deepEqual((await bench.answer()).keys, ['late'])
    assert.match(await late, /^applied/)
  })

  test('too large together is tried one by one; too large alone is the answer', async () => {
    for (const kind of ['too-large', 'invalid'] as const) {
      const bench = new Bench()
      const all = bench.creates(2)
      await bench.fail({ kind })
      assert.deepEqual((await bench.fail({ kind: 'too-large' })).keys, ['k0'])
      assert.deepEqual((await bench.answer()).keys, ['k1'])
      assert.deepEqual(await Promise.all(all), ['too-large', 'applied 101000'])
    }
  })

  test('etcd with too much to do makes us overloaded, not silent', async () => {
    const bench = new Bench()
    const all = bench.creates(2)
    await bench.fail({ kind: 'too-many-requests' })
    assert.deepEqual(await Promise.all(all), ['overloaded', 'overloaded'])
  })

  test('without space left puts are refused unsent and deletes go on, until there is room', async () => {
    const space = { isFull: false }
    const refusal = () =>
      space.isFull ? new StorageError({ kind: 'unavailable', message: 'full' }) : undefined
    const onFull = () => {
      space.isFull = true
    }
    const bench = new Bench({ space: { refusal, onFull } })
    const mixed = () => [bench.create('a'), bench.delete('b'), bench.delete('c'), bench.create('d')]
    const first = mixed()
    const sent = await bench.next()
    // They come while it is not known yet, one of them on a key that is under way.
    const second = [...mixed(), bench.delete('e')]
    await turn()
    const together = await bench.next()
    assert.deepEqual(together.keys, ['e'])
    sent.reject(new EtcdError({ kind: 'no-space', message: 'as told', maybeApplied: true }))
    assert.deepEqual(await Promise.all(first), ['timeout', 'timeout', 'timeout', 'timeout'])
    assert.deepEqual((await bench.answer()).keys, ['b', 'c'])
    together.reject(new EtcdError({ kind: 'unavailable', message: 'not connected' }))
    assert.deepEqual((await bench.answer()).keys, ['e'])
    assert.deepEqual(await Promise.all(second), [
      'unavailable',
      'applied 101000',
      'applied 101001',
      'unavailable',
      'applied 102000',
    ])
    assert.equal(await bench.create('f'), 'unavailable')
    space.isFull = false
    const third = mixed()
    assert.equal((await bench.answer()).keys.length, 4)
    await Promise.all(third)
  })
})

describe('group commit: bounds and end', () => {
  test('past its bounds it says so at once, and when to come back', async () => {
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

  test('what is under way no longer counts as waiting', async () => {
    const bench = new Bench({ waitingOperationsMax: 3 })
    const first = bench.creates(3)
    await turn()
    const more = [bench.create('x'), bench.create('y')]
    await bench.answer()
    await bench.answer()
    for (const end of await Promise.all([...first, ...more])) assert.match(end, /^applied/)
  })

  test('close: takes nothing more, and resolves when all that was taken has ended', async () => {
    const bench = new Bench()
    const all = bench.creates(150)
    let isClosed = false
    const closing = bench.commits.close().then(() => {
      isClosed = true
    })
    assert.equal(await bench.create('late'), 'unavailable')
    await bench.answer()
    await turn()
    assert.equal(isClosed, false)
    await bench.answer()
    await closing
    for (const end of await Promise.all(all)) assert.match(end, /^applied/)
    await bench.commits.close()
  })
})

/** An etcd that goes away and comes back when it is told to. */
class Absence {
  ending = new AbortController().signal
  #isAway = false
  #run = () => {}

  onAway(run: () => void): void {
    this.#run = run
  }

  refusal(): StorageError | undefined {
    return this.#isAway ? new StorageError({ kind: 'unavailable', message: 'away' }) : undefined
  }

  set(isAway: boolean): void {
    this.#isAway = isAway
    if (isAway) this.#run()
  }
}

describe('group commit: while etcd is away', () => {
  test('what waits and what comes is refused at once; what was sent is waited for', async () => {
    const presence = new Absence()
    const bench = new Bench({ presence, grouped: false })
    const sent = bench.creates(256)
    await turn()
    const waiting = [bench.create('w'), bench.delete('x')]
    presence.set(true)
    assert.deepEqual(await Promise.all(waiting), ['unavailable', 'unavailable'])
    assert.equal(await bench.create('y'), 'unavailable')
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
    assert.equal(bench.sent[0]?.options.harmlessEnd, presence.ending)
    await bench.answer()
    assert.equal(await sent[0], 'applied 101000')
    assert.equal(bench.sent.length, 255)
  })

  test('what was sent and certainly did not happen is not sent again', async () => {
    const presence = new Absence()
    const bench = new Bench({ presence })
    const first = bench.create('a')
    await turn()
    const second = bench.create('a')
    presence.set(true)
    await bench.fail({ kind: 'unavailable', maybeApplied: false })
    assert.deepEqual(await Promise.all([first, second]), ['unavailable', 'unavailable'])
    await turn()
    assert.equal(bench.sent.length, 0)
  })

  test('once it is back writes go through', async () => {
    const presence = new Absence()
    const bench = new Bench({ presence })
    presence.set(true)
    assert.equal(await bench.create('a'), 'unavailable')
    presence.set(false)
    const created = bench.create('a')
    await bench.answer()
    assert.equal(await created, 'applied 101000')
  })

  test('operations whose connections are gone are sent back, the others are sent again', async () => {
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
    const again = await bench.answer()
    assert.deepEqual([again.keys, again.options.connectionMax], [['new'], undefined])
    await created
    assert.deepEqual(bench.commits.waiting, { operations: 0, bytes: 0 })
  })
})
