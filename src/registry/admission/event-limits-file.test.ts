import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { silentLog } from '../../lib/log/log.ts'
import { EventLimits } from './event-limits.ts'
import { followEventLimits, readEventLimits } from './event-limits-file.ts'

const HEAD = 'apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n'
const ONE = `${HEAD}limits:\n- type: Server\n  qps: 1\n  burst: 1\n`

describe('readEventLimits', () => {
  test('reads a configuration of Kubernetes', () => {
    const text = `${HEAD}limits:
- {type: Namespace, qps: 50, burst: 100, cacheSize: 2000}
- type: SourceAndObject
  qps: 10
  burst: 50
`
    assert.deepEqual(readEventLimits(text), [
      { type: 'Namespace', unit: 'events', rate: 50, burst: 100, cacheSize: 2000 },
      { type: 'SourceAndObject', unit: 'events', rate: 10, burst: 50, cacheSize: 4096 },
    ])
  })

  test('names the field and the problem in errors', () => {
    const limit = (fields: string): string => `${HEAD}limits: [{${fields}}]`
    const cases: readonly [string, RegExp][] = [
      ['', /the file is empty/],
      [`${ONE}---\n${ONE}`, /more than one document/],
      ['[]', /set apiVersion: eventratelimit/],
      ['kind: Configuration', /set apiVersion: eventratelimit/],
      [HEAD, /limits: must be a list/],
      [`${HEAD}limits: []`, /limits: at least one is required/],
      [`${HEAD}limit: []`, /limit: unknown field/],
      [limit('type: server, qps: 1, burst: 1'), /limits\[0\]\.type: must be one of Server, /],
      [limit('type: Server, burst: 1'), /limits\[0\]\.qps: must be an integer from 1/],
      [limit('type: Server, qps: 0.5, burst: 1'), /limits\[0\]\.qps/],
      [limit('type: Server, qps: 1, burst: -1'), /limits\[0\]\.burst/],
      [limit('type: Server, qps: 1, burst: 1, cacheSize: -1'), /limits\[0\]\.cacheSize/],
      [limit('type: Server, qps: 1, burst: 1, __proto__: 1'), /__proto__: unknown field/],
    ]
    for (const [text, problem] of cases) assert.throws(() => readEventLimits(text), problem, text)
  })
})

describe('followEventLimits', () => {
  test('applies a changed file unless it is invalid', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const folder = await mkdtemp(join(tmpdir(), 'tidings-event-limits-'))
    const path = join(folder, 'limits.yaml')
    let onLine: (msg: string) => void = () => {}
    const nextLine = (): Promise<string> =>
      new Promise((resolve) => {
        onLine = resolve
      })
    const log = { ...silentLog, info: (m: string) => onLine(m), warn: (m: string) => onLine(m) }
    const write = {
      account: 'ada',
      cluster: 'local',
      event: { metadata: {} },
      bytes: 1000,
    }
    const limits = new EventLimits({ limits: [] })
    const poll = async (content: string): Promise<string> => {
      await writeFile(path, content)
      const line = nextLine()
      // The last poll may not have finished yet.
      await new Promise(setImmediate)
      context.mock.timers.tick(1000)
      return line
    }
    try {
      await assert.rejects(followEventLimits(limits, path, silentLog), /ENOENT/)
      await writeFile(path, 'kind: Nonsense')
      await assert.rejects(
        followEventLimits(limits, path, silentLog),
        /limits\.yaml: set apiVersion/,
      )
      await writeFile(path, ONE)
      const follower = await followEventLimits(limits, path, log)
      assert.equal(limits.take(write), undefined)
      assert.notEqual(limits.take(write), undefined)
      assert.equal(await poll('limits: ['), 'Event rate limits not reloaded')
      assert.notEqual(limits.take(write), undefined)
      assert.equal(await poll(ONE.replace('burst: 1', 'burst: 9')), 'Event rate limits reloaded')
      assert.deepEqual([limits.take(write), limits.take(write)], [undefined, undefined])
      follower.stop()
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
