/**
 * Until it is disposed of, calls `run` when the signal aborts, or immediately if it already has. A
 * class rather than a closure, since each call to etcd creates one.
 */
export class AbortListener implements Disposable {
  readonly #signal: AbortSignal
  readonly #run: () => void

  constructor(signal: AbortSignal, run: () => void) {
    this.#signal = signal
    this.#run = run
    if (signal.aborted) run()
    else signal.addEventListener('abort', run)
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#run)
  }
}

/**
 * Aborts when any of its parents does, until it is disposed of, or when `abort` is called.
 * AbortSignal.any would leave an entry at long-lived parents.
 */
export class LinkedAbort implements Disposable {
  readonly abort = (): void => this.#controller.abort()
  readonly #controller = new AbortController()
  readonly #listeners: readonly AbortListener[]

  constructor(...parents: readonly AbortSignal[]) {
    this.#listeners = parents.map((parent) => new AbortListener(parent, this.abort))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener[Symbol.dispose]()
  }
}

/** Calls `run` every `ms` until the signal aborts. Does not keep the process alive. */
export function repeat(ms: number, run: () => void, signal: AbortSignal): void {
  const timer = setInterval(run, ms).unref()
  new AbortListener(signal, () => clearInterval(timer))
}

/**
 * Resolves after `ms`, or as soon as the signal aborts. Never rejects: the caller must check the
 * signal afterwards.
 */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      listener?.[Symbol.dispose]()
      resolve()
    }
    const timer = setTimeout(end, ms)
    const listener = signal && new AbortListener(signal, end)
  })
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => new AbortListener(signal, () => resolve()))
}

/** Waits for `work`, at most `msMax`. The work is not cancelled; a later result is ignored. */
export async function within(msMax: number, work: Promise<unknown>): Promise<void> {
  const bound = new AbortController()
  try {
    await Promise.race([work, pause(msMax, bound.signal)])
  } finally {
    bound.abort()
  }
}
