/** Metrics of the process, of Node and of the build. */
import { performance } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, type Registry } from '@prometheus-io/client'
import { buildInfo, releaseVersion } from '../build-info.ts'

/** Metrics of the library whose names `promtool check metrics` rejects; others show the same. */
const REJECTED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
]
/** The longest interval of a Node timer: without it the last two are sampled ten times a second. */
const NEVER_MS = 2 ** 31 - 1

export function registerProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: NEVER_MS })
  for (const name of REJECTED) registry.removeSingleMetric(name)
  new Counter({
    name: 'nodejs_eventloop_active_seconds_total',
    help: 'How long the event loop was busy; its rate is the utilization.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1000)
    },
  })
}

/** Shows on dashboards which replica runs which build. */
export function registerBuildMetrics(registry: Registry): void {
  const gauge = new Gauge({
    name: 'tidings_build_info',
    help: 'Always 1; the labels are the version, commit and Node release of this build.',
    labelNames: ['version', 'commit', 'node'],
    registers: [registry],
  })
  const { gitCommit: commit } = buildInfo()
  gauge.set({ version: releaseVersion(), commit, node: process.version }, 1)
}
