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

/** Resolves in the next event-loop tick, so that pending I/O and timers run first. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
