import assert from 'node:assert/strict'
import { test } from 'node:test'
import { versionOfState } from '../storage/resource-version.ts'
import { Progress } from './progress.ts'

const at = (revision: number, connection = 1) => ({
  version: versionOfState(revision),
  connection,
})
const patient = { signal: new AbortController().signal, waitMsMax: 10_000 }

test('progress: those whose version is reached go on, the others hurry it on', async () => {
  let hurried = 0
  const progress = new Progress(() => hurried++)
  const early = progress.waitFor(at(5), patient)
  const late = progress.waitFor(at(9), patient)
  assert.equal(hurried, 2)
  progress.reached(versionOfState(7), 1)
  assert.equal(await early, true)
  assert.deepEqual([progress.waiting, hurried], [1, 3])
  progress.reached(versionOfState(9), 1)
  assert.equal(await late, true)
  assert.deepEqual([progress.waiting, hurried], [0, 3])
})

test('progress: who waits too long, or for nothing, is told so', async () => {
  const progress = new Progress(() => {})
  const brief = progress.waitFor(at(5), { ...patient, waitMsMax: 1 })
  assert.equal(await brief, false)
  const vain = progress.waitFor(at(5), patient)
  progress.giveUp()
  assert.equal(await vain, false)
  assert.equal(progress.waiting, 0)
})

test('progress: an aborted signal ends the wait with timeout', async () => {
  const progress = new Progress(() => {})
  const end = new AbortController()
  const waiting = progress.waitFor(at(5), { signal: end.signal, waitMsMax: 10_000 })
  end.abort()
  await assert.rejects(waiting, { kind: 'timeout' })
  assert.equal(progress.waiting, 0)
})

test('progress: a version counts in the history that was asked, and in no other', async () => {
  const progress = new Progress(() => {})
  const waiting = progress.waitFor(at(5, 2), patient)
  progress.reached(versionOfState(9), 1)
  progress.reached(versionOfState(9), 0)
  assert.equal(progress.waiting, 1)
  progress.reached(versionOfState(9), 2)
  assert.equal(await waiting, true)
})
