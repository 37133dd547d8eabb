import type { SimulatedProcess } from './process.ts'
import type { Entry } from './scheduler.ts'

/** What setTimeout, setInterval and setImmediate return. */
export class SimulatedTimer {
  readonly process: SimulatedProcess
  readonly everyMs: number | undefined
  entry: Entry | undefined
  /** How long the machine had been suspended when the timer was set. */
  suspendedMs = 0
  readonly fire: () => void
  #work: (() => void) | undefined

  constructor(process: SimulatedProcess, work: () => void, everyMs: number | undefined) {
    this.process = process
    this.everyMs = everyMs
    this.#work = work
    this.fire = () => this.#work?.()
  }

  get isCancelled(): boolean {
    return this.#work === undefined
  }

  cancel(): void {
    this.#work = undefined
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  [Symbol.dispose](): void {
    this.process.clear(this)
  }
}
