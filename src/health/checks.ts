import type { Clock } from '../lib/clock.ts'
import type { HealthCheck } from './probe.ts'

/** Operators cannot see what the server does when no line has been written for this long. */
const LOG_STALL_MS = 120_000
/** Calls end at their deadline; a call that is open this long after it will never end. */
const CLIENT_STUCK_MS = 10_000

/** Always passes: the response itself shows that the server is reachable. */
export const ping: HealthCheck = { name: 'ping', run: async () => {} }

/** Fails when the log has been blocked for two minutes, so that no line reaches its reader. */
export function logCheck(log: { lastFlushedAt(): number }, clock: Clock): HealthCheck {
  return {
    name: 'log',
    run: async () => {
      if (clock.now() - log.lastFlushedAt() >= LOG_STALL_MS) throw new Error('logging blocked')
    },
  }
}

/** Fails with `reason` until `isDone`. */
export function conditionCheck(
  name: string,
  isDone: () => boolean,
  reason: () => string,
): HealthCheck {
  return {
    name,
    run: async () => {
      if (!isDone()) throw new Error(reason())
    },
  }
}

/**
 * The check of livez: fails when our client of the datastore is stuck. It passes during an outage of
 * the datastore itself, which a restart of this process would not fix.
 */
export function datastoreClientCheck(overdueMs: () => number): HealthCheck {
  return {
    ...DATASTORE,
    run: async () => {
      const late = overdueMs()
      if (late >= CLIENT_STUCK_MS) {
        throw new Error(`a datastore call is ${Math.round(late / 1000)}s past its deadline`)
      }
    },
  }
}

const DATASTORE = { name: 'datastore', aliases: ['etcd'] } as const
/** The minimum time between two queries, whatever the number of probes. */
const DATASTORE_INTERVAL_MS = 1000

/**
 * The check of readyz: fails when a query of the datastore fails. Probes that arrive during a query, or
 * within a second of its start, share its result, so that many probes cause no load.
 */
export function datastoreCheck(query: () => Promise<void>, clock: Clock): HealthCheck {
  let queriedAt = Number.NEGATIVE_INFINITY
  let isPending = false
  let result: Promise<void> = Promise.resolve()
  const queryNow = async (): Promise<void> => {
    isPending = true
    try {
      await query()
    } finally {
      isPending = false
    }
  }
  return {
    ...DATASTORE,
    run: async () => {
      const now = clock.now()
      if (!isPending && now - queriedAt >= DATASTORE_INTERVAL_MS) {
        queriedAt = now
        result = queryNow()
      }
      await result
    },
  }
}

/** The same check, which then also fails when `condition` rejects. */
export function followedBy(check: HealthCheck, condition: () => Promise<void>): HealthCheck {
  return {
    ...check,
    run: async (signal) => {
      await check.run(signal)
      await condition()
    },
  }
}
