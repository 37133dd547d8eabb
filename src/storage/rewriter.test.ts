import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KeyValue } from '../etcd/client.ts'
import type { Operation, Outcome } from './batch-txn.ts'
import { StorageError } from './errors.ts'
import { found, foundToDelete } from './event-decoding.ts'
import { EventKeys } from './keys.ts'
import { versionOfChange } from './resource-version.ts'
import { Rewriter } from './rewriter.ts'
import type { StoredEvent } from './storage.ts'
import { prepareValue, sealValue } from './stored-form.ts'

const keys = new EventKeys('')
const key = { namespace: 'ns', name: 'a' }
const bodyOf = (note: string) =>
  Buffer.from(`{"metadata":{"name":"a","namespace":"ns"},"note":"${note}"}`)
const noteOf = (stored: StoredEvent | undefined) =>
  stored && (JSON.parse(stored.body.toString()).note as string)

/** One key as etcd would keep it, with somebody else who may write to it as well. */
class OneKey {
  kv: KeyValue | undefined
  reads = 0
  writes = 0
  nowMs = 0
  /** Runs before each write, once for each entry. */
  readonly meanwhile: (() => void)[] = []
  #revision = 10

  put(note: string): StoredEvent {
    const value = Buffer.from(sealValue(prepareValue(bodyOf(note)), 1, 0))
    const modRevision = ++this.#revision
    const etcdKey = Buffer.from(keys.format(key))
    this.kv = { key: etcdKey, value, modRevision, createRevision: 1, version: 1, lease: 0n }
    return this.stored() ?? assert.fail()
  }

  stored(): StoredEvent | undefined {
    if (this.kv === undefined) return undefined
    return found(this.kv, key)
  }

  read = async (): Promise<KeyValue | undefined> => {
    this.reads++
    return this.kv
  }

  submit = async (operation: Operation): Promise<Outcome> => {
    this.meanwhile.shift()?.()
    this.writes++
    if (operation.expected !== (this.kv?.modRevision ?? 0)) {
      return { applied: false, current: this.kv }
    }
    if (operation.value === undefined) this.kv = undefined
    else this.put(JSON.parse(operation.value.bytes.toString('utf8', 32)).note)
    const modRevision = this.kv?.modRevision ?? ++this.#revision
    return { applied: true, version: versionOfChange(modRevision, 0), writtenAtMs: 1 }
  }

  rewriter(recall: () => StoredEvent | undefined = () => undefined): Rewriter {
    const clock = { now: () => this.nowMs }
    const connections = { recalledFor: () => 1, newestConnection: () => 1 }
    return new Rewriter({ keys, writes: this, read: this.read, recall, clock, ...connections })
  }
}

const append = (note: string) => (current: StoredEvent | undefined) =>
  bodyOf(`${noteOf(current) ?? ''}${note}`)

describe('rewriter', () => {
  test('a refusal brings what is there now: the change is made again without another read', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(
      () => etcd.put('b'),
      () => etcd.put('c'),
    )
    const answer = await etcd.rewriter().rewrite(key, append('!'))
    assert.equal(noteOf(answer), 'c!')
    assert.deepEqual([etcd.reads, etcd.writes], [1, 3])
  })

  test('what was deleted meanwhile is decided on as missing', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(() => {
      etcd.kv = undefined
    })
    assert.equal(noteOf(await etcd.rewriter().rewrite(key, append('!'))), '!')
  })

  test('a guess saves the read', async () => {
    const etcd = new OneKey()
    const stored = etcd.put('a')
    const answer = await etcd.rewriter(() => stored).rewrite(key, append('!'))
    assert.equal(noteOf(answer), 'a!')
    assert.deepEqual([etcd.reads, etcd.writes], [0, 1])
  })

  test('an old guess costs a refusal and harms nothing', async () => {
    const etcd = new OneKey()
    const old = etcd.put('a')
    etcd.put('b')
    assert.equal(noteOf(await etcd.rewriter(() => old).rewrite(key, append('!'))), 'b!')
    assert.deepEqual([etcd.reads, etcd.writes], [0, 2])
  })

  test('no answer rests on a guess: to throw, or to write nothing, it looks first', async () => {
    const etcd = new OneKey()
    const old = etcd.put('a')
    etcd.put('b')
    const rewriter = etcd.rewriter(() => old)
    const onlyB = (current: StoredEvent | undefined) => {
      if (noteOf(current) !== 'b') throw new Error('not b')
      return 'keep' as const
    }
    assert.equal(noteOf(await rewriter.rewrite(key, onlyB)), 'b')
    const onlyA = (current: StoredEvent | undefined) => {
      if (noteOf(current) !== 'a') throw new Error('not a')
      return 'delete' as const
    }
    await assert.rejects(rewriter.rewrite(key, onlyA), /not a/)
    assert.equal(noteOf(etcd.stored()), 'b')
  })

  test('keeping what is not there is missing', async () => {
    const rewriter = new OneKey().rewriter()
    await assert.rejects(
      rewriter.rewrite(key, () => 'keep'),
      (error) => error instanceof StorageError && error.kind === 'missing',
    )
  })

  test('those who change one event here take turns, each from what the one before left', async () => {
    const etcd = new OneKey()
    etcd.put('')
    const rewriter = etcd.rewriter()
    const all = Array.from({ length: 50 }, () => rewriter.rewrite(key, append('x')))
    await Promise.all(all)
    assert.equal(noteOf(etcd.stored()), 'x'.repeat(50))
    assert.deepEqual([etcd.reads, etcd.writes], [1, 50])
  })

  test('the turn goes on when one fails; what it left is looked at again', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    const rewriter = etcd.rewriter()
    etcd.meanwhile.push(() => {
      throw new StorageError({ kind: 'timeout', message: 'who knows' })
    })
    const first = rewriter.rewrite(key, append('1'))
    const second = rewriter.rewrite(key, append('2'))
    await assert.rejects(first, /who knows/)
    assert.equal(noteOf(await second), 'a2')
    assert.equal(etcd.reads, 2)
  })

  test('when others are faster for too long it gives up', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    for (let count = 0; count < 10; count++) {
      etcd.meanwhile.push(() => {
        etcd.put('b')
        etcd.nowMs += 7_000
      })
    }
    await assert.rejects(
      etcd.rewriter().rewrite(key, append('!')),
      (error) => error instanceof StorageError && error.kind === 'conflict',
    )
    assert.equal(etcd.writes, 5)
  })

  test('who has waited too long for a turn is told to come back, and writes nothing', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(() => {
      etcd.nowMs += 31_000
    })
    const rewriter = etcd.rewriter()
    const first = rewriter.rewrite(key, append('1'))
    const second = rewriter.rewrite(key, append('2'))
    assert.equal(noteOf(await first), 'a1')
    await assert.rejects(
      second,
      (error) => error instanceof StorageError && error.kind === 'overloaded',
    )
    assert.equal(noteOf(await rewriter.rewrite(key, append('3'))), 'a13')
  })

  test('a look that takes too long is no doubt about the write: there was none', async () => {
    const one = new OneKey()
    one.put('old')
    one.read = async () => {
      throw new StorageError({ kind: 'timeout', message: 'no answer in time' })
    }
    await assert.rejects(
      one.rewriter().rewrite(key, () => bodyOf('new')),
      {
        kind: 'unavailable',
        message: 'no answer in time',
        retryAfterMs: 1000,
      },
    )
    assert.equal(one.writes, 0)
  })

  for (const { kind, value, isDeletable } of [
    { kind: 'foreign', value: '?', isDeletable: false },
    { kind: 'corrupt', value: '{"w":1,"i":0}\n{"metadata":{"labels":5}}', isDeletable: true },
  ]) {
    test(`a value that is ${kind} is not written over, and ${isDeletable ? '' : 'not '}deleted`, async () => {
      const etcd = new OneKey()
      etcd.put('a')
      const replace = (): void => {
        if (etcd.kv) etcd.kv = { ...etcd.kv, value: Buffer.from(value), modRevision: 99 }
      }
      etcd.meanwhile.push(replace)
      const isKind = { name: 'StorageError', kind }
      await assert.rejects(etcd.rewriter().rewrite(key, append('!')), isKind)
      assert.equal(etcd.kv?.value.toString(), value)
      const remove = etcd.rewriter().rewrite(key, () => 'delete', foundToDelete)
      if (!isDeletable) await assert.rejects(remove, isKind)
      else assert.deepEqual((await remove).key, key)
      assert.equal(etcd.kv === undefined, isDeletable)
    })
  }
})
