import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KeyValue } from '../../etcd/client.ts'
import { StorageError } from '../errors.ts'
import { versionOfChange } from '../resource-version.ts'
import type { StoredEvent } from '../storage.ts'
import { prepareValue, sealValue } from '../stored-form.ts'
import type { Operation, Outcome } from './batch-txn.ts'
import { found, foundToDelete } from './event-decoding.ts'
import { EventKeys } from './keys.ts'
import { OptimisticUpdater } from './optimistic-updater.ts'

const keys = new EventKeys('')
const key = { cluster: 'local', namespace: 'ns', name: 'a' }
const bodyOf = (note: string) =>
  Buffer.from(`{"metadata":{"name":"a","namespace":"ns"},"note":"${note}"}`)
const noteOf = (stored: StoredEvent | undefined) =>
  stored && (JSON.parse(stored.body.toString()).note as string)

/** One key of a fake etcd, to which another replica may write as well. */
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

  updater(): OptimisticUpdater {
    const clock = { now: () => this.nowMs }
    return new OptimisticUpdater({
      keys,
      writes: this,
      read: this.read,
      clock,
      newestConnection: () => 1,
    })
  }
}

const knownAs = (stored: StoredEvent) => ({ known: { stored, connectionMax: 1 } })

const append = (note: string) => (current: StoredEvent | undefined) =>
  bodyOf(`${noteOf(current) ?? ''}${note}`)

describe('optimistic updater', () => {
  test('an update that is refused retries from the returned value without another read', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(
      () => etcd.put('b'),
      () => etcd.put('c'),
    )
    const result = await etcd.updater().update(key, append('!'))
    assert.equal(noteOf(result), 'c!')
    assert.deepEqual([etcd.reads, etcd.writes], [1, 3])
  })

  test('an event that was deleted meanwhile is undefined for the next decision', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(() => {
      etcd.kv = undefined
    })
    assert.equal(noteOf(await etcd.updater().update(key, append('!'))), '!')
  })

  test('a cached state saves the read', async () => {
    const etcd = new OneKey()
    const stored = etcd.put('a')
    const result = await etcd.updater().update(key, append('!'), knownAs(stored))
    assert.equal(noteOf(result), 'a!')
    assert.deepEqual([etcd.reads, etcd.writes], [0, 1])
  })

  test('a stale cached state costs one refused write', async () => {
    const etcd = new OneKey()
    const old = etcd.put('a')
    etcd.put('b')
    assert.equal(noteOf(await etcd.updater().update(key, append('!'), knownAs(old))), 'b!')
    assert.deepEqual([etcd.reads, etcd.writes], [0, 2])
  })

  test('a decision to throw or to write nothing is repeated on a confirmed state', async () => {
    const etcd = new OneKey()
    const old = etcd.put('a')
    etcd.put('b')
    const updater = etcd.updater()
    const onlyB = (current: StoredEvent | undefined) => {
      if (noteOf(current) !== 'b') throw new Error('not b')
      return 'keep' as const
    }
    assert.equal(noteOf(await updater.update(key, onlyB, knownAs(old))), 'b')
    const onlyA = (current: StoredEvent | undefined) => {
      if (noteOf(current) !== 'a') throw new Error('not a')
      return 'delete' as const
    }
    await assert.rejects(updater.update(key, onlyA, knownAs(old)), /not a/)
    assert.equal(noteOf(etcd.stored()), 'b')
  })

  test('an update that keeps a missing event fails with missing', async () => {
    const updater = new OneKey().updater()
    await assert.rejects(
      updater.update(key, () => 'keep'),
      (error) => error instanceof StorageError && error.kind === 'missing',
    )
  })

  test('concurrent updates of one event are queued, each starting from the previous state', async () => {
    const etcd = new OneKey()
    etcd.put('')
    const updater = etcd.updater()
    const all = Array.from({ length: 50 }, () => updater.update(key, append('x')))
    await Promise.all(all)
    assert.equal(noteOf(etcd.stored()), 'x'.repeat(50))
    assert.deepEqual([etcd.reads, etcd.writes], [1, 50])
  })

  test('the queue continues after a failed update, with a new read', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    const updater = etcd.updater()
    etcd.meanwhile.push(() => {
      throw new StorageError({ kind: 'timeout', message: 'unknown' })
    })
    const first = updater.update(key, append('1'))
    const second = updater.update(key, append('2'))
    await assert.rejects(first, /unknown/)
    assert.equal(noteOf(await second), 'a2')
    assert.equal(etcd.reads, 2)
  })

  test('an update that keeps conflicting for too long fails with conflict', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    for (let count = 0; count < 10; count++) {
      etcd.meanwhile.push(() => {
        etcd.put('b')
        etcd.nowMs += 7_000
      })
    }
    await assert.rejects(
      etcd.updater().update(key, append('!')),
      (error) => error instanceof StorageError && error.kind === 'conflict',
    )
    assert.equal(etcd.writes, 5)
  })

  test('an update that is queued for too long fails with overloaded and writes nothing', async () => {
    const etcd = new OneKey()
    etcd.put('a')
    etcd.meanwhile.push(() => {
      etcd.nowMs += 31_000
    })
    const updater = etcd.updater()
    const first = updater.update(key, append('1'))
    const second = updater.update(key, append('2'))
    assert.equal(noteOf(await first), 'a1')
    await assert.rejects(
      second,
      (error) => error instanceof StorageError && error.kind === 'overloaded',
    )
    assert.equal(noteOf(await updater.update(key, append('3'))), 'a13')
  })

  test('a read that times out fails with unavailable, because nothing was written', async () => {
    const one = new OneKey()
    one.put('old')
    one.read = async () => {
      throw new StorageError({ kind: 'timeout', message: 'no response in time' })
    }
    await assert.rejects(
      one.updater().update(key, () => bodyOf('new')),
      {
        kind: 'unavailable',
        message: 'no response in time',
        retryAfterMs: 1000,
      },
    )
    assert.equal(one.writes, 0)
  })

  for (const { kind, value, isDeletable } of [
    { kind: 'foreign', value: '?', isDeletable: false },
    { kind: 'corrupt', value: '{"w":1,"i":0}\n{"metadata":{"labels":5}}', isDeletable: true },
  ]) {
    test(`a ${kind} value is not overwritten and can ${isDeletable ? '' : 'not '}be deleted`, async () => {
      const etcd = new OneKey()
      etcd.put('a')
      const replace = (): void => {
        if (etcd.kv) etcd.kv = { ...etcd.kv, value: Buffer.from(value), modRevision: 99 }
      }
      etcd.meanwhile.push(replace)
      const isKind = { name: 'StorageError', kind }
      await assert.rejects(etcd.updater().update(key, append('!')), isKind)
      assert.equal(etcd.kv?.value.toString(), value)
      const remove = etcd.updater().update(key, () => 'delete', { find: foundToDelete })
      if (!isDeletable) await assert.rejects(remove, isKind)
      else assert.deepEqual((await remove).key, key)
      assert.equal(etcd.kv === undefined, isDeletable)
    })
  }
})
