/** Paths about the server itself. Their services define who may use them. */
export const HEALTH_PATHS = ['/healthz', '/livez', '/readyz'] as const
export const VERSION_PATH = '/version'
export const METRICS_PATH = '/metrics'
export const SLIS_PATH = '/metrics/slis'
export const UI_PATH = '/ui'
