import type { EtcdClient } from '../etcd/client.ts'
import type { EtcdError } from '../etcd/errors.ts'
import type { Log } from '../lib/log.ts'

const LOOK_INTERVAL_MS = 500
/** Different reasons that are logged in one outage of one member. */
const REASONS_MAX = 5

/**
 * Logs when a member of etcd can no longer be reached, why, again when that reason becomes another,
 * and when it is back, whether or not there are requests at that moment.
 */
export function logMembers(client: EtcdClient, log: Log, signal: AbortSignal): void {
  const lost = new Map<string, Set<string>>()
  const unrenewed = new Map<string, Set<string>>()
  const look = (): void => {
    for (const { endpoint, state, lastError, renewalError } of client.endpoints()) {
      if (state === 'failing' && isNews(lost, endpoint, lastError)) {
        log.warn('An etcd member cannot be reached', { endpoint, err: lastError })
      } else if (state === 'ready' && lost.delete(endpoint)) {
        log.info('An etcd member is back', { endpoint })
      }
      if (isNews(unrenewed, endpoint, renewalError)) {
        log.warn('No connection to etcd with the renewed credentials; the old one stays in use', {
          endpoint,
          err: renewalError,
        })
      }
    }
  }
  const timer = setInterval(look, LOOK_INTERVAL_MS)
  timer.unref()
  signal.addEventListener('abort', () => clearInterval(timer))
}

/** Whether this reason has not been logged yet since there was none. */
function isNews(
  logged: Map<string, Set<string>>,
  endpoint: string,
  error: EtcdError | undefined,
): boolean {
  if (error === undefined) {
    logged.delete(endpoint)
    return false
  }
  const known = logged.get(endpoint) ?? new Set()
  logged.set(endpoint, known)
  if (known.has(error.message) || known.size >= REASONS_MAX) return false
  known.add(error.message)
  return true
}
