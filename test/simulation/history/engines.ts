import type { EngineProcess } from './engine-process.ts'

/** The processes with DuckDB that belong to one process of a replica, and what is wrong with them now. */
export class SimulatedEngines {
  readonly #all = new Set<EngineProcess>()
  #isStopped = false

  add(engine: EngineProcess): void {
    this.#all.add(engine)
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** SIGKILL to all of them; returns how many there are. */
  kill(): number {
    for (const engine of this.#all) engine.kill()
    return this.#all.size
  }

  /** SIGSTOP. */
  stop(): void {
    this.#isStopped = true
  }

  resume(): void {
    this.#isStopped = false
    for (const engine of this.#all) engine.advance()
  }
}
