import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { targetOf } from '../gate/target.fixture.ts'
import { Probe } from '../health/probe.ts'
import { monotonicClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import { serverCommand } from '../options/commands.ts'
import { parseFlags } from '../options/parse.ts'
import { TopSources } from '../registry/top-sources.ts'
import { beginning } from '../storage/resource-version.ts'
import type { EventWrites, ReadStorage } from '../storage/storage.ts'
import type { EventSummaries } from '../storage/summary.ts'
import { ServiceInstaller } from './services.ts'

const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1'])
assert.equal(parsed.kind, 'run')
const installer = new ServiceInstaller(parsed.options, new Registry())
const { services } = installer
installer.installHealth(
  [new Probe('livez', []), new Probe('readyz', [])],
  silentLog,
  monotonicClock,
)
installer.installServerInfo({ regardedKinds: () => [], decide: undefined, setVerbosity: () => {} })
installer.installEvents({
  storage: {} as ReadStorage,
  writes: {} as EventWrites,
  sources: new TopSources(),
  namespaces: {} as ReadStorage,
  clusters: {
    named: () => [],
    events: () => [],
    oldestIn: () => undefined,
    newestIn: () => undefined,
  },
  decide: async () => undefined,
  version: () => beginning,
  summaries: {} as EventSummaries,
  windows: { hasHistory: false, list: async () => ({ windows: [], hidden: 0 }) },
  oldestIn: undefined,
  admission: undefined,
  accessChecks: { add: () => ({ [Symbol.dispose]: () => {} }) } as never,
})

const serviceOf = (path: string) => services.find(targetOf(path))?.service

describe('the services of a replica', () => {
  test('health, version and metrics are about the server; health and metrics outlast a shutdown', () => {
    const flags = Object.fromEntries(
      ['/livez', '/readyz', '/version', '/metrics', '/metrics/slis', '/api', '/openapi/v2'].map(
        (path) => {
          const { isAboutServer = false, isServedAtShutdown = false } = serviceOf(path) ?? {}
          return [path, [isAboutServer, isServedAtShutdown]]
        },
      ),
    )
    assert.deepEqual(flags, {
      '/livez': [true, true],
      '/readyz': [true, true],
      '/version': [true, false],
      '/metrics': [true, true],
      '/metrics/slis': [true, true],
      '/api': [false, false],
      '/openapi/v2': [false, false],
    })
    assert.equal(serviceOf('/livezy'), undefined)
  })

  test('metrics label requests by the roots of served paths, and by no other path', () => {
    const roots = ['/livez/ping', '/metrics/slis', '/apis/x/v1', '/', '/nope', '/livezy', '/a/b/c']
    assert.deepEqual(
      roots.map((path) => services.rootOf(path)),
      ['/livez', '/metrics', '/apis', '', '', '', ''],
    )
  })

  test('paths below a group version belong to the events service, even with surplus slashes', () => {
    for (const path of ['/api/v1//', '/apis/events.k8s.io/v1//', '/api/v1/namespaces/a/events//']) {
      assert.match(serviceOf(path)?.name ?? '', /^v1\./, path)
      assert.equal(serviceOf(path)?.isOpenToHost, false, path)
    }
    assert.equal(serviceOf('//api/v1/events'), undefined)
  })
})
