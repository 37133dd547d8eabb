import { badRequest, methodNotAllowed } from '../api/status.ts'
import type { Handler } from '../http/exchange.ts'
import type { Service } from './services.ts'

export const LOG_LEVEL_PATH = '/debug/flags/v'
/** Two digits, a line end and some slack. */
const BODY_BYTES_MAX = 16

/**
 * `PUT /debug/flags/v`, as in Kubernetes: sets `-v` of this replica until it ends. Needs the verb
 * `put` on this path, which only cluster-admin has among the built-in roles.
 */
export function logLevelService(setVerbosity: (level: number) => void): Service {
  const handler: Handler = async (request) => {
    if (request.method !== 'PUT') throw methodNotAllowed()
    const text = (await request.body(BODY_BYTES_MAX)).toString().trim()
    if (!/^([0-9]|10)$/.test(text)) throw badRequest('the body must be a number from 0 to 10')
    setVerbosity(Number(text))
    return {
      status: 200,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: `successfully set klog.logging.verbosity to ${text}`,
    }
  }
  return {
    name: LOG_LEVEL_PATH,
    paths: [],
    isOpenToHost: false,
    isServerWide: true,
    bodyBytesMax: BODY_BYTES_MAX,
    find: ({ path }) => (path === LOG_LEVEL_PATH ? handler : undefined),
  }
}
