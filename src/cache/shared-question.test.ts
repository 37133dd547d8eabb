import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Version, versionOfState } from '../storage/resource-version.ts'
import { SharedQuestion } from './shared-question.ts'

/** Questions that are answered by hand. */
class Oracle {
  readonly open: PromiseWithResolvers<Version>[] = []
  readonly question: SharedQuestion<Version> = new SharedQuestion(() => {
    const asked = Promise.withResolvers<Version>()
    this.open.push(asked)
    return asked.promise
  })

  async answer(index: number, revision: number): Promise<void> {
    this.open[index]?.resolve(versionOfState(revision))
    await new Promise(setImmediate)
  }
}

const { signal } = new AbortController()

test('shared question: all who come while one is under way share the next', async () => {
  const oracle = new Oracle()
  const { question } = oracle
  const first = question.ask(signal)
  assert.equal(oracle.open.length, 1)
  const others = Array.from({ length: 100 }, () => question.ask(signal))
  assert.equal(oracle.open.length, 1, 'the next waits for its turn')
  await oracle.answer(0, 5)
  assert.equal(await first, versionOfState(5))
  assert.equal(oracle.open.length, 2)
  await oracle.answer(1, 9)
  assert.deepEqual(new Set(await Promise.all(others)), new Set([versionOfState(9)]))
  assert.equal(question.begun, 2)
})

test('shared question: nobody joins one that was put before they came', async () => {
  const oracle = new Oracle()
  const first = oracle.question.ask(signal)
  // A write is answered here: what the first question finds need not have it.
  const second = oracle.question.ask(signal)
  await oracle.answer(0, 5)
  assert.equal(await first, versionOfState(5))
  await oracle.answer(1, 6)
  assert.equal(await second, versionOfState(6))
})

test('shared question: a failure is told to those who waited for it, the others ask again', async () => {
  const oracle = new Oracle()
  const failing = oracle.question.ask(signal)
  const next = oracle.question.ask(signal)
  oracle.open[0]?.reject(new Error('no etcd'))
  await assert.rejects(failing, /no etcd/)
  await oracle.answer(1, 7)
  assert.equal(await next, versionOfState(7))
})

test('shared question: who goes away fails with timeout, the others get their answer', async () => {
  const oracle = new Oracle()
  const end = new AbortController()
  const impatient = oracle.question.ask(end.signal)
  const patient = oracle.question.ask(signal)
  end.abort()
  await assert.rejects(impatient, { kind: 'timeout' })
  await oracle.answer(0, 1)
  await oracle.answer(1, 2)
  assert.equal(await patient, versionOfState(2))
})

test('shared question: who comes right after an answer starts another', async () => {
  const oracle = new Oracle()
  const first = oracle.question.ask(signal)
  await oracle.answer(0, 3)
  await first
  const later = oracle.question.ask(signal)
  assert.equal(oracle.open.length, 2)
  await oracle.answer(1, 4)
  assert.equal(await later, versionOfState(4))
})
