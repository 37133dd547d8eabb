import { setImmediate } from 'node:timers/promises'
import { VERSION_PATH } from '../gate/server-paths.ts'
import type { Handler } from '../http/exchange.ts'
import { SharedWork } from '../lib/shared-work.ts'
import type { Service } from './services.ts'

/** The response of `/version`, with the field names of Kubernetes. */
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

/** Serves `/version`, always indented, since people read it more often than programs do. */
export function versionService(build: BuildInfo): Service {
  const body = JSON.stringify(build, undefined, 2)
  const handler: Handler = async () => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body,
  })
  return {
    name: 'version',
    paths: [VERSION_PATH],
    isOpenToHost: true,
    isAboutServer: true,
    find: ({ path }) =>
      path === VERSION_PATH || path === `${VERSION_PATH}/` ? handler : undefined,
  }
}

/**
 * Serves metrics in the Prometheus text format. Rendering takes milliseconds, so concurrent
 * requests share one rendering per turn of the event loop: one user may send hundreds of them at
 * once.
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
  return {
    name: path,
    paths: [path],
    isOpenToHost: true,
    isAboutServer: true,
    isServerWide: true,
    isServedAtShutdown: true,
    find: (target) => (target.path === path ? handler : undefined),
  }
}
