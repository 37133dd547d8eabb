import assert from 'node:assert/strict'
import { test } from 'node:test'
import { versionOfState } from '../storage/resource-version.ts'
import { Progress } from './progress.ts'

const at = (revision: number, connection = 1) => ({
  version: versionOfState(revision),
  connection,
})
const patient = { signal: new AbortController().signal, waitMsMax: 10_000 }

test('progress: a wait ends when its version is reached; the remaining waits request progress again', async () => {
  let requests = 0
  const progress = new Progress(() => requests++)
  const early = progress.waitFor(at(5), patient)
  const late = progress.waitFor(at(9), patient)
  assert.equal(requests, 2)
  progress.reached(versionOfState(7), 1)
  assert.equal(await early, true)
  assert.deepEqual([progress.waiting, requests], [1, 3])
  progress.reached(versionOfState(9), 1)
  assert.equal(await late, true)
  assert.deepEqual([progress.waiting, requests], [0, 3])
})

test('progress: a wait that times out or is given up resolves to false', async () => {
  const progress = new Progress(() => {})
  const brief = progress.waitFor(at(5), { ...patient, waitMsMax: 1 })
  assert.equal(await brief, false)
  const pending = progress.waitFor(at(5), patient)
  progress.giveUp()
  assert.equal(await pending, false)
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

test('progress: a version counts only over a verified connection', async () => {
  const progress = new Progress(() => {})
  const waiting = progress.waitFor(at(5, 2), patient)
  progress.reached(versionOfState(9), 1)
  progress.reached(versionOfState(9), 0)
  assert.equal(progress.waiting, 1)
  progress.reached(versionOfState(9), 2)
  assert.equal(await waiting, true)
})
