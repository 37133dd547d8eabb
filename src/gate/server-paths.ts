/** Paths about the server itself. What each of them may do is a property of its service. */
export const HEALTH_PATHS = ['/healthz', '/livez', '/readyz'] as const
export const VERSION_PATH = '/version'
export const METRICS_PATH = '/metrics'
export const SLIS_PATH = '/metrics/slis'
export const UI_PATH = '/ui'
