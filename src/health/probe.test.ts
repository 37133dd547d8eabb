import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type HealthCheck, Probe, runCheck, withGrace } from './probe.ts'

const signal = new AbortController().signal
const ok = (name: string): HealthCheck => ({ name, run: async () => {} })
const failing = (name: string): HealthCheck => ({
  name,
  run: async () => {
    throw new Error(`${name} failed`)
  },
})

describe('Probe', () => {
  test('outcomes are in registration order, whatever the duration of each check', async () => {
    const slow: HealthCheck = {
      name: 'slow',
      run: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))),
    }
    const report = await new Probe('livez', [slow, failing('bad'), ok('quick')]).run([], signal)
    assert.deepEqual(
      report.outcomes.map(({ name, result }) => `${name} ${result}`),
      ['slow ok', 'bad failed', 'quick ok'],
    )
    assert.equal(report.isHealthy, false)
  })

  test('checks run concurrently', async () => {
    const started: string[] = []
    const gate = Promise.withResolvers<void>()
    const waiting = (name: string): HealthCheck => ({
      name,
      run: async () => {
        started.push(name)
        await gate.promise
      },
    })
    const run = new Probe('livez', [waiting('a'), waiting('b')]).run([], signal)
    assert.deepEqual(started, ['a', 'b'])
    gate.resolve()
    assert.equal((await run).isHealthy, true)
  })

  test('a check that is excluded by its name or its alias does not run', async () => {
    const bad = { ...failing('datastore'), aliases: ['etcd'] }
    for (const name of ['datastore', 'etcd']) {
      const report = await new Probe('readyz', [bad]).run([name], signal)
      assert.deepEqual(report.outcomes, [{ name: 'datastore', result: 'excluded' }])
      assert.equal(report.isHealthy, true)
    }
  })

  test('excludes that match no check are reported once each', async () => {
    const report = await new Probe('readyz', [ok('ping')]).run(['x', 'ping', 'x', ''], signal)
    assert.deepEqual(report.unmatched, ['x', ''])
  })

  test('two checks with the same name or alias are an error', () => {
    assert.throws(() => new Probe('livez', [ok('a'), ok('a')]), /duplicate health check: a/)
    assert.throws(
      () => new Probe('livez', [ok('etcd'), { ...ok('datastore'), aliases: ['etcd'] }]),
      /duplicate health check: etcd/,
    )
  })

  test('a check that never ends counts as failed after its timeout', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const hung = runCheck({ name: 'hung', run: () => new Promise(() => {}) }, signal)
    context.mock.timers.tick(10_000)
    const outcome = await hung
    assert.equal(outcome.result, 'failed')
    assert.match(String(outcome.result === 'failed' && outcome.reason), /timed out after 10s/)
  })
})

describe('withGrace', () => {
  test('a failing check passes until the grace period is over, and fails after it', async () => {
    let now = 1000
    const check = withGrace(failing('step'), {
      graceMs: 500,
      startedAt: 1000,
      clock: { now: () => now },
    })
    now = 1499
    assert.equal((await runCheck(check, signal)).result, 'ok')
    now = 1500
    assert.equal((await runCheck(check, signal)).result, 'failed')
  })
})
