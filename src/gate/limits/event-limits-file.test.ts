import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { silentLog } from '../../lib/log.ts'
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

  test('says what is wrong, and where', () => {
    const limit = (fields: string): string => `${HEAD}limits: [{${fields}}]`
    const cases: readonly [string, RegExp][] = [
      ['', /nothing in it/],
      [`${ONE}---\n${ONE}`, /more than one document/],
      ['[]', /must be a mapping/],
      ['kind: Configuration', /write apiVersion: eventratelimit/],
      [HEAD, /limits: there must be at least one/],
      [`${HEAD}limits: 7`, /at least one/],
      [`${HEAD}limit: []`, /not "limit"/],
      [limit('type: server, qps: 1, burst: 1'), /limits\[0\]\.type: must be one of Server, /],
      [limit('type: Server, burst: 1'), /limits\[0\]\.qps: must be a whole number from 1/],
      [limit('type: Server, qps: 0.5, burst: 1'), /limits\[0\]\.qps/],
      [limit('type: Server, qps: 1, burst: -1'), /limits\[0\]\.burst/],
      [limit('type: Server, qps: 1, burst: 1, cacheSize: -1'), /limits\[0\]\.cacheSize/],
      [limit('type: Server, qps: 1, burst: 1, __proto__: 1'), /not "__proto__"/],
    ]
    for (const [text, problem] of cases) assert.throws(() => readEventLimits(text), problem, text)
  })
})

describe('followEventLimits', () => {
  test('follows the file, and keeps what it had when that breaks', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const folder = await mkdtemp(join(tmpdir(), 'tidings-event-limits-'))
    const path = join(folder, 'limits.yaml')
    let heard: (msg: string) => void = () => {}
    const next = (): Promise<string> =>
      new Promise((resolve) => {
        heard = resolve
      })
    const log = { ...silentLog, info: (m: string) => heard(m), warn: (m: string) => heard(m) }
    const write = { user: { name: 'ada', groups: [] }, event: { metadata: {} }, bytes: 1000 }
    const limits = new EventLimits({ limits: [] })
    const look = async (content: string): Promise<string> => {
      await writeFile(path, content)
      const told = next()
      // The look before may still be ending.
      await new Promise(setImmediate)
      context.mock.timers.tick(1000)
      return told
    }
    try {
      await assert.rejects(followEventLimits(limits, path, silentLog), /ENOENT/)
      await writeFile(path, 'kind: Nonsense')
      await assert.rejects(followEventLimits(limits, path, silentLog), /limits\.yaml: it must be/)
      await writeFile(path, ONE)
      const follower = await followEventLimits(limits, path, log)
      limits.take(write)
      assert.throws(() => limits.take(write), { code: 429 })
      assert.equal(await look('limits: ['), 'Event rate limits not reloaded')
      assert.throws(() => limits.take(write), { code: 429 })
      assert.equal(await look(ONE.replace('burst: 1', 'burst: 9')), 'Event rate limits reloaded')
      limits.take(write)
      limits.take(write)
      follower.stop()
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
