import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, asApiError } from '../api/api-error.ts'
import { retryDelayMs } from '../model/retries.ts'

export interface Polled<Data> {
  /** Result of the last successful poll. */
  readonly data: Data | undefined
  /** When the last successful poll completed. */
  readonly atMs: number | undefined
  /** Error of the last poll, if it failed. */
  readonly error: ApiError | undefined
  /** Polls now. */
  readonly again: () => void
}

export interface PollOptions<Data> {
  readonly load: (signal: AbortSignal) => Promise<Data>
  /** Returns the delay until the next poll. */
  readonly everyMs: (data: Data) => number
}

/**
 * Polls while the tab is visible, one request at a time, and less often while it fails. Restarts
 * when `inputs` change; the old data stays until there is new data.
 */
export function usePoll<Data>(
  options: PollOptions<Data>,
  inputs: readonly unknown[],
): Polled<Data> {
  const [state, setState] = useState<Omit<Polled<Data>, 'again'>>({
    data: undefined,
    atMs: undefined,
    error: undefined,
  })
  const again = useRef<() => void>(() => {})
  useEffect(() => {
    const poller = new Poller(options, setState)
    again.current = () => poller.poll()
    const onSeen = (): void => poller.pollIfDue()
    const onOnline = (): void => poller.pollIfLost()
    document.addEventListener('visibilitychange', onSeen)
    window.addEventListener('online', onOnline)
    poller.poll()
    return () => {
      document.removeEventListener('visibilitychange', onSeen)
      window.removeEventListener('online', onOnline)
      poller.end()
    }
  }, inputs)
  return { ...state, again: () => again.current() }
}

type Change<Data> = (before: Omit<Polled<Data>, 'again'>) => Omit<Polled<Data>, 'again'>

class Poller<Data> {
  readonly #options: PollOptions<Data>
  readonly #show: (change: Change<Data>) => void
  readonly #ended = new AbortController()
  #timer: number | undefined
  #isPolling = false
  #failures = 0
  #dueMs = 0
  /** The last poll got no response. */
  #isLost = false

  constructor(options: PollOptions<Data>, show: (change: Change<Data>) => void) {
    this.#options = options
    this.#show = show
  }

  /** Does nothing while a request is in flight or the tab is hidden. */
  poll(): void {
    if (this.#isPolling || this.#ended.signal.aborted || document.hidden) return
    this.#isPolling = true
    clearTimeout(this.#timer)
    void this.#load().then((delayMs) => {
      this.#isPolling = false
      this.#dueMs = Date.now() + delayMs
      if (!this.#ended.signal.aborted) this.#timer = setTimeout(() => this.poll(), delayMs)
    })
  }

  /** Polls if the tab was hidden when the next poll was due. */
  pollIfDue(): void {
    if (Date.now() >= this.#dueMs) this.poll()
  }

  /** Polls again when the network is back, if the last poll got no response. */
  pollIfLost(): void {
    if (this.#isLost) this.poll()
  }

  end(): void {
    this.#ended.abort()
    clearTimeout(this.#timer)
  }

  /** Resolves to the delay until the next poll. */
  async #load(): Promise<number> {
    const { signal } = this.#ended
    const { load, everyMs } = this.#options
    try {
      const data = await load(signal)
      this.#failures = 0
      this.#isLost = false
      if (!signal.aborted) this.#show(() => ({ data, atMs: Date.now(), error: undefined }))
      return everyMs(data)
    } catch (error) {
      this.#failures++
      const failure = asApiError(error)
      this.#isLost = failure.code === 0
      if (!signal.aborted) this.#show((before) => ({ ...before, error: failure }))
      return retryDelayMs({ count: this.#failures, retryAfterSeconds: failure.retryAfterSeconds })
    }
  }
}
