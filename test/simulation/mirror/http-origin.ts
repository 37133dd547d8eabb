/** Replaces src/mirror/http-origin.ts in the simulation: requests go to the simulated origin. */
import {
  type ListPageOptions,
  type Origin,
  type OriginChange,
  OriginError,
  type OriginPage,
  type OriginWatchOptions,
} from '../../../src/mirror/origin.ts'
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import { OriginCall, type OriginServer, type Receiver } from './origin-server.ts'

/** The same value as in src/mirror/http-origin.ts. */
const headersTimeoutMs = 30_000
const watchIdleTimeoutMs = 120_000
const watchMs = { least: 300_000, most: 600_000 }

export interface OriginHost {
  readonly server: OriginServer
  readonly replica: number
}

const hosts = new WeakMap<SimulatedProcess, OriginHost>()

/** Connects a process to an origin: its mirrors follow that one. */
export function attachOrigin(process: SimulatedProcess, host: OriginHost): void {
  hosts.set(process, host)
}

export class HttpOrigin implements Origin {
  readonly #process: SimulatedProcess
  readonly #host: OriginHost

  constructor() {
    const process = currentProcess()
    const host = process && hosts.get(process)
    if (process === undefined || host === undefined) throw new Error('no simulated origin')
    this.#process = process
    this.#host = host
  }

  listPage({ signal, ...request }: ListPageOptions): Promise<OriginPage> {
    const { server, replica } = this.#host
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      const settle = (act: () => void) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        server.cancel(call)
        act()
      }
      const call = new OriginCall(replica, {
        process: this.#process,
        unread: 0,
        page: (page) => settle(() => resolve(page)),
        end: (error) => settle(() => reject(error)),
      })
      const abort = () => settle(() => reject(signal.reason))
      const late = new OriginError('unavailable', 'no response within 30 s')
      const timer = setTimeout(() => settle(() => reject(late)), headersTimeoutMs)
      signal.addEventListener('abort', abort)
      server.page(call, request)
    })
  }

  watch({ namespace, from, signal, onOpen }: OriginWatchOptions): AsyncIterable<OriginChange> {
    const { server, replica } = this.#host
    const reader = new WatchReader(this.#process, signal, {
      onOpen,
      onEnd: () => server.cancel(call),
    })
    const call = new OriginCall(replica, reader)
    if (!signal.aborted) server.watch(call, { namespace, from: Number(from) })
    return reader
  }
}

type Waiting = PromiseWithResolvers<IteratorResult<OriginChange>>

/** What a watch has received, until it is read. */
class WatchReader implements Receiver, AsyncIterableIterator<OriginChange> {
  readonly process: SimulatedProcess
  readonly #signal: AbortSignal
  readonly #onEnd: () => void
  readonly #onOpen: (() => void) | undefined
  #queue: (readonly OriginChange[])[] = []
  #at = 0
  unread = 0
  #isEnded = false
  #error: OriginError | undefined
  #waiting: Waiting | undefined
  #hasHeaders = false
  #receivedAt: number
  readonly #idle: ReturnType<typeof setInterval>
  readonly #timeout: ReturnType<typeof setTimeout>

  constructor(
    process: SimulatedProcess,
    signal: AbortSignal,
    { onOpen, onEnd }: { readonly onOpen: (() => void) | undefined; readonly onEnd: () => void },
  ) {
    this.#onOpen = onOpen
    this.process = process
    this.#signal = signal
    this.#onEnd = onEnd
    this.#receivedAt = performance.now()
    this.#idle = setInterval(() => {
      if (!this.#hasHeaders) this.#finish(new OriginError('unavailable', 'no response'))
      else if (performance.now() - this.#receivedAt >= watchIdleTimeoutMs) this.#finish(undefined)
    }, headersTimeoutMs)
    const lastMs = process.random.between(watchMs.least, watchMs.most)
    this.#timeout = setTimeout(() => this.end(undefined), lastMs)
    signal.addEventListener('abort', this.#abort)
    if (signal.aborted) this.#finish(undefined)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<OriginChange>> {
    const batch = this.#queue[0]
    const value = batch?.[this.#at]
    if (batch !== undefined && value !== undefined) {
      this.unread--
      if (++this.#at === batch.length) {
        this.#queue.shift()
        this.#at = 0
      }
      return Promise.resolve({ done: false, value })
    }
    if (this.#error !== undefined) return Promise.reject(this.#error)
    if (this.#isEnded) return Promise.resolve({ done: true, value: undefined })
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  return(): Promise<IteratorResult<OriginChange>> {
    this.#finish(undefined)
    return Promise.resolve({ done: true, value: undefined })
  }

  changes(changes: readonly OriginChange[]): void {
    if (this.#isEnded) return
    if (!this.#hasHeaders) this.#onOpen?.()
    this.#hasHeaders = true
    this.#receivedAt = performance.now()
    if (changes.length === 0) return
    this.#queue.push(changes)
    this.unread += changes.length
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) waiting.resolve(this.next())
  }

  end(error: OriginError | undefined): void {
    this.#finish(error)
  }

  readonly #abort = (): void => {
    this.#queue = []
    this.#finish(undefined)
  }

  #finish(error: OriginError | undefined): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#error = error
    clearInterval(this.#idle)
    clearTimeout(this.#timeout)
    this.#signal.removeEventListener('abort', this.#abort)
    this.#onEnd()
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) waiting.resolve(this.next())
  }
}
