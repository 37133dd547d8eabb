import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runCheck } from '../health/probe.ts'
import { silentLog } from '../lib/log/log.ts'
import { Startup } from './startup.ts'

const signal = new AbortController().signal

async function results(startup: Startup): Promise<string[]> {
  const outcomes = await Promise.all(startup.checks().map((check) => runCheck(check, signal)))
  return outcomes.map(({ name, result }) => `${name} ${result}`)
}

describe('Startup', () => {
  test('a check passes once its own step is done', async () => {
    const slow = Promise.withResolvers<void>()
    const startup = new Startup(
      [
        { name: 'slow', run: () => slow.promise },
        { name: 'quick', run: async () => {} },
      ],
      silentLog,
    )
    assert.deepEqual(await results(startup), [
      'poststarthook/slow failed',
      'poststarthook/quick failed',
    ])
    const running = startup.run()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(await results(startup), [
      'poststarthook/slow failed',
      'poststarthook/quick ok',
    ])
    slow.resolve()
    await running
    assert.deepEqual(await results(startup), ['poststarthook/slow ok', 'poststarthook/quick ok'])
  })

  test('the error of a failed step names the step, and its check goes on failing', async () => {
    const cause = new Error('no such file')
    const startup = new Startup([{ name: 'bad', run: () => Promise.reject(cause) }], silentLog)
    await assert.rejects(startup.run(), { message: 'start-up step bad failed', cause })
    assert.deepEqual(await results(startup), ['poststarthook/bad failed'])
  })
})
