import { yieldToEventLoop } from '../lib/yield.ts'
import { StorageError } from '../storage/errors.ts'

/** Long work yields to the event loop after this long. */
const sliceMs = 4

/**
 * Cuts long work into time slices. `hold` acquires what the work needs across slices; it is called
 * before the first yield only, so that work which fits into one slice does not pay for it.
 */
export class TimeSlicer implements Disposable {
  readonly #hold: (() => Disposable) | undefined
  #held: Disposable | undefined
  #beganAt = performance.now()

  constructor(hold?: () => Disposable) {
    this.#hold = hold
  }

  /** Starts a new slice: the work resumes after it has waited for something else. */
  begin(): void {
    this.#beganAt = performance.now()
  }

  isOver(): boolean {
    return performance.now() - this.#beganAt >= sliceMs
  }

  async yield(): Promise<void> {
    this.#held ??= this.#hold?.()
    await yieldToEventLoop()
    this.begin()
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]()
  }
}

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw timedOut(signal)
}

/** Settles like `promise`, or rejects with `timeout` as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(timedOut(signal))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function timedOut(signal: AbortSignal): StorageError {
  return new StorageError({ kind: 'timeout', message: 'the read timed out', cause: signal.reason })
}
