import type { Handler } from '../http/exchange.ts'
import type { Service } from './services.ts'

/** What `/version` says of this build, under the names that clients of Kubernetes look for. */
export interface BuildInfo {
  readonly major: string
  readonly minor: string
  readonly gitVersion: string
  readonly gitCommit: string
  readonly gitTreeState: string
  readonly buildDate: string
  readonly goVersion: string
  readonly compiler: string
  readonly platform: string
}

/** `/version`, always indented, as people read it more often than programs do. */
export function versionService(build: BuildInfo): Service {
  const body = JSON.stringify(build, undefined, 2)
  const handler: Handler = async () => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body,
  })
  return {
    name: 'version',
    isOpenToHost: true,
    find: (path) => (path === '/version' || path === '/version/' ? handler : undefined),
  }
}

/** A page of metrics in the Prometheus text format. */
export function metricsService(
  path: string,
  registry: { readonly contentType: string; metrics(): Promise<string> },
): Service {
  const handler: Handler = async () => ({
    status: 200,
    headers: { 'content-type': registry.contentType },
    body: await registry.metrics(),
  })
  return { name: path, isOpenToHost: true, find: (asked) => (asked === path ? handler : undefined) }
}
