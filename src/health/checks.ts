import type { Clock } from '../lib/clock.ts'
import type { HealthCheck } from './probe.ts'

/** A log that has not been written out for this long hides what the server is going through. */
const LOG_STALL_MS = 120_000
/** Calls end at their deadline; one that is still open this much later will never end. */
const CLIENT_STUCK_MS = 10_000

/** The server can answer at all. */
export const ping: HealthCheck = { name: 'ping', run: async () => {} }

/** Fails when lines are written to the log but none has reached its reader for two minutes. */
export function logCheck(log: { lastFlushedAt(): number }, clock: Clock): HealthCheck {
  return {
    name: 'log',
    run: async () => {
      if (clock.now() - log.lastFlushedAt() >= LOG_STALL_MS) throw new Error('logging blocked')
    },
  }
}

/** Passes as soon as `isDone`; until then `reason` is given. */
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
 * For livez: is our client of the datastore stuck? An outage of the datastore itself passes
 * here, as restarting this process would not mend it.
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
/** The datastore is asked at most this often, however many probes come in. */
const DATASTORE_INTERVAL_MS = 1000

/**
 * For readyz: does the datastore answer? Probes that come while it is being asked, or within a
 * second of the last question, share the answer, so that a crowd of probes is no load.
 */
export function datastoreCheck(ask: () => Promise<void>, clock: Clock): HealthCheck {
  let askedAt = Number.NEGATIVE_INFINITY
  let isPending = false
  let answer: Promise<void> = Promise.resolve()
  const askNow = async (): Promise<void> => {
    isPending = true
    try {
      await ask()
    } finally {
      isPending = false
    }
  }
  return {
    ...DATASTORE,
    run: async () => {
      const now = clock.now()
      if (!isPending && now - askedAt >= DATASTORE_INTERVAL_MS) {
        askedAt = now
        answer = askNow()
      }
      await answer
    },
  }
}

/** The same check, which then also fails when `ask` rejects. */
export function followedBy(check: HealthCheck, ask: () => Promise<void>): HealthCheck {
  return {
    ...check,
    run: async (signal) => {
      await check.run(signal)
      await ask()
    },
  }
}
