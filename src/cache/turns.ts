import { StorageError } from '../storage/errors.ts'

/** Long work lets others in after this long. */
const turnMs = 4

/** Cuts long work into turns of the event loop; `hold` is taken before the first is given away. */
export class Turns implements Disposable {
  readonly #hold: (() => Disposable) | undefined
  #held: Disposable | undefined
  #beganAt = performance.now()

  constructor(hold?: () => Disposable) {
    this.#hold = hold
  }

  /** Work begins again after a wait. */
  begin(): void {
    this.#beganAt = performance.now()
  }

  isOver(): boolean {
    return performance.now() - this.#beganAt >= turnMs
  }

  async yield(): Promise<void> {
    this.#held ??= this.#hold?.()
    await nextTurn()
    this.begin()
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]()
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw timedOut(signal)
}

/** What comes of `promise`, or `timeout` as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(timedOut(signal))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function timedOut(signal: AbortSignal): StorageError {
  return new StorageError({
    kind: 'timeout',
    message: 'the time for this read is over',
    cause: signal.reason,
  })
}
