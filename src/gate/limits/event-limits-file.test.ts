import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { silentLog } from '../../lib/log.ts'
import { openEventLimits, readEventLimits } from './event-limits-file.ts'

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
      { type: 'Namespace', qps: 50, burst: 100, cacheSize: 2000 },
      { type: 'SourceAndObject', qps: 10, burst: 50, cacheSize: 4096 },
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

describe('openEventLimits', () => {
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
    const ada = { name: 'ada', groups: [] }
    const look = async (content: string): Promise<string> => {
      await writeFile(path, content)
      const told = next()
      // The look before may still be ending.
      await new Promise(setImmediate)
      context.mock.timers.tick(1000)
      return told
    }
    try {
      await assert.rejects(
        openEventLimits(path, silentLog, () => {}),
        /ENOENT/,
      )
      await writeFile(path, 'kind: Nonsense')
      await assert.rejects(
        openEventLimits(path, silentLog, () => {}),
        /limits\.yaml: it must be/,
      )
      await writeFile(path, ONE)
      const { limits, stop } = await openEventLimits(path, log, () => {})
      limits.take(ada, { metadata: {} })
      assert.throws(() => limits.take(ada, { metadata: {} }), { code: 429 })
      assert.equal(await look('limits: ['), 'Event rate limits not reloaded')
      assert.throws(() => limits.take(ada, { metadata: {} }), { code: 429 })
      assert.equal(await look(ONE.replace('burst: 1', 'burst: 9')), 'Event rate limits reloaded')
      limits.take(ada, { metadata: {} })
      limits.take(ada, { metadata: {} })
      stop()
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
