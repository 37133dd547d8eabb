import { Counter, Gauge, Registry } from '@prometheus-io/client'
import type { HealthTallies } from '../../health/tallies.ts'

/** The metrics at `/metrics/slis`, with the names and labels of kube-apiserver. */
export function healthRegistry(tallies: HealthTallies): Registry {
  const registry = new Registry()
  const registers = [registry]
  new Gauge({
    name: 'kubernetes_healthcheck',
    help: '1 if the check passed when it last ran, 0 if it failed.',
    labelNames: ['name', 'type'],
    registers,
    collect() {
      for (const { name, type, isPassing } of tallies.all())
        this.set({ name, type }, isPassing ? 1 : 0)
    },
  })
  new Counter({
    name: 'kubernetes_healthchecks_total',
    help: 'How often the check ran, by outcome.',
    labelNames: ['name', 'type', 'status'],
    registers,
    collect() {
      // The tallies hold the totals, so the series are rebuilt for each scrape.
      this.reset()
      for (const { name, type, passed, failed } of tallies.all()) {
        if (passed > 0) this.inc({ name, type, status: 'success' }, passed)
        if (failed > 0) this.inc({ name, type, status: 'error' }, failed)
      }
    },
  })
  return registry
}
