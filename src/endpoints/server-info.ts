import { setImmediate } from 'node:timers/promises'
import type { Handler } from '../http/exchange.ts'
import { SharedWork } from '../lib/shared-work.ts'
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

/**
 * A page of metrics in the Prometheus text format. To make it takes milliseconds, so it is made once in
 * a turn of the event loop, for all who ask meanwhile: one user may ask for it hundreds of times at once.
 */
export function metricsService(
  path: string,
  registry: { readonly contentType: string; metrics(): Promise<string> },
): Service {
  const page = new SharedWork(async () => {
    await setImmediate()
    return Buffer.from(await registry.metrics())
  })
  const handler: Handler = async () => ({
    status: 200,
    headers: { 'content-type': registry.contentType },
    body: await page.join(),
  })
  return { name: path, isOpenToHost: true, find: (asked) => (asked === path ? handler : undefined) }
}
