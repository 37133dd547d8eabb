import type { EtcdClient } from '../etcd/client.ts'
import type { Log } from '../lib/log.ts'

const LOOK_INTERVAL_MS = 500

/**
 * Tells the log when a member of etcd can no longer be reached and when it is back, whether or
 * not anybody asks at that moment.
 */
export function logMembers(client: EtcdClient, log: Log, signal: AbortSignal): void {
  const lost = new Set<string>()
  const look = (): void => {
    for (const { endpoint, state, lastError } of client.endpoints()) {
      if (state === 'failing' && !lost.has(endpoint)) {
        lost.add(endpoint)
        log.warn('An etcd member cannot be reached', { endpoint, err: lastError })
      } else if (state === 'ready' && lost.delete(endpoint)) {
        log.info('An etcd member is back', { endpoint })
      }
    }
  }
  const timer = setInterval(look, LOOK_INTERVAL_MS)
  timer.unref()
  signal.addEventListener('abort', () => clearInterval(timer))
}
