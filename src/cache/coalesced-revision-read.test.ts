import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Version, versionOfState } from '../storage/resource-version.ts'
import { CoalescedRevisionRead } from './coalesced-revision-read.ts'

/** A store whose responses are sent by hand. */
class ManualStore {
  readonly requests: PromiseWithResolvers<Version>[] = []
  readonly reader: CoalescedRevisionRead<Version> = new CoalescedRevisionRead(() => {
    const request = Promise.withResolvers<Version>()
    this.requests.push(request)
    return request.promise
  })

  async respond(index: number, revision: number): Promise<void> {
    this.requests[index]?.resolve(versionOfState(revision))
    await new Promise(setImmediate)
  }
}

const { signal } = new AbortController()

test('all callers that arrive while a revision read is in flight share the next one', async () => {
  const store = new ManualStore()
  const { reader } = store
  const first = reader.read(signal)
  assert.equal(store.requests.length, 1)
  const others = Array.from({ length: 100 }, () => reader.read(signal))
  assert.equal(store.requests.length, 1, 'the next read starts when the first has ended')
  await store.respond(0, 5)
  assert.equal(await first, versionOfState(5))
  assert.equal(store.requests.length, 2)
  await store.respond(1, 9)
  assert.deepEqual(new Set(await Promise.all(others)), new Set([versionOfState(9)]))
  assert.equal(reader.begun, 2)
})

test('a caller never shares a revision read that was sent before it arrived', async () => {
  const store = new ManualStore()
  const first = store.reader.read(signal)
  // A write is acknowledged here: the response to the first read may not include it.
  const second = store.reader.read(signal)
  await store.respond(0, 5)
  assert.equal(await first, versionOfState(5))
  await store.respond(1, 6)
  assert.equal(await second, versionOfState(6))
})

test('a failed revision read fails the callers that shared it, and later callers read again', async () => {
  const store = new ManualStore()
  const failing = store.reader.read(signal)
  const next = store.reader.read(signal)
  store.requests[0]?.reject(new Error('no etcd'))
  await assert.rejects(failing, /no etcd/)
  await store.respond(1, 7)
  assert.equal(await next, versionOfState(7))
})

test('a caller that aborts its revision read fails with timeout, the others get their result', async () => {
  const store = new ManualStore()
  const end = new AbortController()
  const impatient = store.reader.read(end.signal)
  const patient = store.reader.read(signal)
  end.abort()
  await assert.rejects(impatient, { kind: 'timeout' })
  await store.respond(0, 1)
  await store.respond(1, 2)
  assert.equal(await patient, versionOfState(2))
})

test('a caller that arrives right after a response starts another revision read', async () => {
  const store = new ManualStore()
  const first = store.reader.read(signal)
  await store.respond(0, 3)
  await first
  const later = store.reader.read(signal)
  assert.equal(store.requests.length, 2)
  await store.respond(1, 4)
  assert.equal(await later, versionOfState(4))
})
