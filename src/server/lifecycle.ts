import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../http/listener.ts'
import { within } from '../lib/abort.ts'
import { Latch } from '../lib/latch.ts'
import type { Log } from '../lib/log/log.ts'

/**
 * How the server stops. The names are those of a Kubernetes API server's signals and appear in
 * the log, so that operators can read both logs alike.
 *
 *   SIGTERM or SIGINT
 *   |  ShutdownInitiated           readyz fails from here on; everything is served as before
 *   |    ... --shutdown-delay-duration: load balancers notice and choose other replicas ...
 *   |  AfterShutdownDelayDuration
 *   |  NotAcceptingNewRequest      the listening socket is closed; clients get GOAWAY, with the
 *   |                              last request that is served, or `Connection: close`
 *   |    ... one second, then idle connections are closed ...
 *   |    ... requests in flight finish, for at most --request-timeout ...
 *   |  InFlightRequestsDrained
 *   |    ... long requests (watches) are ended cleanly, a hundred at a time ...
 *   |  HTTPServerStoppedListening  the last connection is closed
 *   |    ... the store is closed, the last spans are sent, the log is flushed ...
 *   exit 0
 *
 * With --shutdown-send-retry-after the listening socket stays open while requests drain, and
 * every new request but a probe gets 429 with `Retry-After`.
 *
 * A second signal at any point ends the process at once, with exit code 1.
 */
export class Lifecycle {
  readonly shutdownInitiated: Latch = new Latch()
  readonly notAcceptingNewRequest: Latch = new Latch()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  /** Runs the whole timeline once; resolves when every connection is closed. */
  async stop(listeners: readonly Listener[], timing: ShutdownTiming): Promise<void> {
    this.#reach('ShutdownInitiated')
    this.shutdownInitiated.open()
    await sleep(timing.delayMs)
    this.#reach('AfterShutdownDelayDuration')

    this.#reach('NotAcceptingNewRequest')
    const { requestTimeoutMs } = timing
    timing.onLastRequest?.()
    if (timing.sendRetryAfter) {
      this.notAcceptingNewRequest.open()
      await within(requestTimeoutMs, quiet(listeners))
    }
    await closeToNewRequests(listeners)
    await within(requestTimeoutMs, quiet(listeners))
    this.#reach('InFlightRequestsDrained')

    await Promise.all(listeners.map((listener) => listener.endLongRequests(LONG_REQUESTS_MS)))
    await Promise.all(listeners.map((listener) => listener.close()))
    this.#reach('HTTPServerStoppedListening')
  }

  #reach(name: string): void {
    this.#log.info('Shutdown event', { name })
  }
}

export interface ShutdownTiming {
  readonly delayMs: number
  readonly requestTimeoutMs: number
  readonly sendRetryAfter: boolean
  /** Called when no new request will be accepted. */
  readonly onLastRequest?: () => void
}

/** How long clients have to read GOAWAY or `Connection: close` before idle connections close. */
const NOTICE_MS = 1000
/** How long the responses of long requests may take to end after they were cancelled. */
const LONG_REQUESTS_MS = 5000

async function closeToNewRequests(listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) listener.stopAccepting()
  if (listeners.some((listener) => listener.connectionCount > 0)) await sleep(NOTICE_MS)
  for (const listener of listeners) listener.closeIdle()
}

async function quiet(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.quiet()))
}
