import type { EtcdClient } from '../../etcd/client.ts'
import type { EtcdError } from '../../etcd/errors.ts'
import { repeat } from '../../lib/abort.ts'
import type { Log } from '../../lib/log/log.ts'

const POLL_INTERVAL_MS = 500
/** How many different reasons are logged in one outage of one member. */
const REASONS_MAX = 5

/**
 * Polls the connections and logs when a member of etcd becomes unreachable and why, when the reason
 * changes, and when the member can be reached again.
 */
export function logMembers(client: EtcdClient, log: Log, signal: AbortSignal): void {
  const lost = new Map<string, Set<string>>()
  const unrenewed = new Map<string, Set<string>>()
  const poll = (): void => {
    for (const { endpoint, state, lastError, renewalError } of client.endpoints()) {
      if (state === 'failing' && isNewReason(lost, endpoint, lastError)) {
        log.warn('An etcd member cannot be reached', { endpoint, err: lastError })
      } else if (state === 'ready' && lost.delete(endpoint)) {
        log.info('An etcd member can be reached again', { endpoint })
      }
      if (isNewReason(unrenewed, endpoint, renewalError)) {
        log.warn(
          'Cannot connect to etcd with the renewed credentials; the old connection is still in use',
          {
            endpoint,
            err: renewalError,
          },
        )
      }
    }
  }
  repeat(POLL_INTERVAL_MS, poll, signal)
}

/** Whether this reason has not been logged yet in the current outage. */
function isNewReason(
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
