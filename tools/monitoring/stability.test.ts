import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metricsByName } from './catalogue.ts'
import { namesWithLevels, stabilityOf } from './stability.ts'

test('every metric with a level of its own exists', () => {
  const metrics = metricsByName()
  assert.deepEqual(
    namesWithLevels.filter((name) => !metrics.has(name)),
    [],
  )
})

test('metrics have the level of who defined them', () => {
  const levels = {
    apiserver_request_total: 'stable',
    apiserver_flowcontrol_rejected_requests_total: 'beta',
    apiserver_request_sli_duration_seconds: 'alpha',
    etcd_request_duration_seconds: 'alpha',
    process_open_fds: 'stable',
    process_cpu_user_seconds_total: 'own',
    nodejs_eventloop_lag_seconds: 'own',
    tidings_build_info: 'own',
  }
  for (const [name, level] of Object.entries(levels)) assert.equal(stabilityOf(name), level, name)
})
