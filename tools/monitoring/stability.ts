/** How far the name and the labels of each metric can be relied on (docs/explanation/versions.md). */

/** A level of Kubernetes; `own` is what neither Kubernetes nor Prometheus has defined. */
export type Stability = 'stable' | 'beta' | 'alpha' | 'own'

/** The levels that Kubernetes 1.37 gives its metrics; those that are not here are alpha. */
const KUBERNETES: Readonly<Record<string, Stability>> = {
  apiserver_current_inflight_requests: 'stable',
  apiserver_flowcontrol_rejected_requests_total: 'beta',
  apiserver_flowcontrol_request_wait_duration_seconds: 'beta',
  apiserver_longrunning_requests: 'stable',
  apiserver_request_duration_seconds: 'stable',
  apiserver_request_total: 'stable',
  apiserver_response_sizes: 'stable',
  kubernetes_healthcheck: 'stable',
  kubernetes_healthchecks_total: 'stable',
}

/** What Prometheus wants every library to call the same. */
const PROMETHEUS: ReadonlySet<string> = new Set([
  'process_cpu_seconds_total',
  'process_heap_bytes',
  'process_max_fds',
  'process_open_fds',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
  'process_virtual_memory_bytes',
])

export function stabilityOf(name: string): Stability {
  if (PROMETHEUS.has(name)) return 'stable'
  return KUBERNETES[name] ?? (/^(apiserver|etcd)_/.test(name) ? 'alpha' : 'own')
}

/** The names that have a level of their own, to be compared with those of a replica. */
export const namesWithLevels: readonly string[] = [...Object.keys(KUBERNETES), ...PROMETHEUS]
