import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from './http/listener.ts'
import { within } from './lib/abort.ts'
import { Latch } from './lib/latch.ts'
import type { Log } from './lib/log.ts'

/**
 * How the server stops. The names are those of a Kubernetes API server's signals and appear in
 * the log, so that what operators know of one holds for the other.
 *
 *   SIGTERM or SIGINT
 *   |  ShutdownInitiated           readyz fails from here on; everything is served as before
 *   |    ... --shutdown-delay-duration: load balancers notice and look elsewhere ...
 *   |  AfterShutdownDelayDuration
 *   |  NotAcceptingNewRequest      the listening socket is closed; clients hear GOAWAY, with the
 *   |                              last request that is served, or `Connection: close`
 *   |    ... one second, then idle connections are closed ...
 *   |    ... requests under way finish, for at most --request-timeout ...
 *   |  InFlightRequestsDrained
 *   |    ... long requests (watches) are ended in order, a hundred at a time ...
 *   |  HTTPServerStoppedListening  the last connection is gone
 *   |    ... the store is closed, the log is flushed ...
 *   exit 0
 *
 * With --shutdown-send-retry-after the listening socket stays open while requests drain, and
 * every new request but a probe is answered with 429 and `Retry-After`.
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

  /** Goes through the whole timeline once; resolves when every connection is gone. */
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
    await sendAway(listeners)
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
  /** From here on whoever is served or refused does not come back. */
  readonly onLastRequest?: () => void
}

/** How long clients have to hear that their connection is about to go, before idle ones do. */
const NOTICE_MS = 1000
/** How long the answers of long requests may take to end once they have been told to. */
const LONG_REQUESTS_MS = 5000

async function sendAway(listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) listener.stopAccepting()
  if (listeners.some((listener) => listener.connectionCount > 0)) await sleep(NOTICE_MS)
  for (const listener of listeners) listener.closeIdle()
}

async function quiet(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.quiet()))
}
