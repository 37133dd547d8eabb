import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CountedWrites } from './counted-writes.ts'
import { StorageError } from './errors.ts'
import { PlainStorage } from './plain-storage.fixture.ts'

const body = (note: string): Buffer => Buffer.from(`{"metadata":{},"note":"${note}"}`)
const key = (name: string) => ({ cluster: 'local', namespace: 'shop', name })
const none = { created: 0, updated: 0, deleted: 0 }

const failing = (kind: 'timeout' | 'unavailable') => async (): Promise<never> => {
  throw new StorageError({ kind, message: 'no response' })
}

test('writes are counted by what they did: nothing for those that failed or changed nothing', async () => {
  const storage = new PlainStorage()
  const writes = new CountedWrites({
    create: (at, content) => storage.update(at, () => content),
    update: (at, change) => storage.update(at, change),
    delete: (at) => storage.update(at, () => 'remove'),
  })
  await writes.create(key('a'), body('1'))
  await writes.update(key('b'), () => body('1'))
  await writes.update(key('a'), () => body('2'))
  await writes.update(key('a'), (current) => current?.body)
  await assert.rejects(writes.update(key('c'), () => undefined))
  const refuse = (): never => {
    throw new Error('refused')
  }
  await assert.rejects(writes.update(key('a'), refuse))
  assert.deepEqual(writes.counts.applied, { created: 2, updated: 1, deleted: 0 })
  await writes.update(key('a'), () => 'remove')
  await assert.rejects(writes.update(key('a'), () => 'remove'))
  await writes.delete(key('b'))
  await assert.rejects(writes.delete(key('b')))
  const applied = { created: 2, updated: 1, deleted: 2 }
  assert.deepEqual(writes.counts, { applied, unknown: none })
})

test('a write without a response in time is counted apart, by what it was to do', async () => {
  const fail = failing('timeout')
  const storage = new PlainStorage()
  const stored = await storage.update(key('a'), () => body('1'))
  const writes = new CountedWrites({
    create: fail,
    delete: fail,
    update: (at, change) => {
      change(at.name === 'a' ? stored : undefined)
      return fail()
    },
  })
  await assert.rejects(writes.create(key('c'), body('1')))
  await assert.rejects(writes.delete(key('c')))
  await assert.rejects(writes.update(key('a'), () => body('2')))
  await assert.rejects(writes.update(key('a'), () => 'remove'))
  await assert.rejects(writes.update(key('b'), () => body('1')))
  // Nothing was to be written.
  await assert.rejects(writes.update(key('b'), () => 'remove'))
  const unknown = { created: 2, updated: 1, deleted: 2 }
  assert.deepEqual(writes.counts, { applied: none, unknown })
})

test('a write that was refused for certain is not counted', async () => {
  const fail = failing('unavailable')
  const writes = new CountedWrites({ create: fail, update: fail, delete: fail })
  await assert.rejects(writes.create(key('a'), body('1')))
  await assert.rejects(writes.delete(key('a')))
  assert.deepEqual(writes.counts, { applied: none, unknown: none })
})
