import { PerKeyQueue } from './per-key-queue.ts'
import type { Lane } from './run-queue.ts'
import { Semaphore } from './semaphore.ts'

/**
 * Bounds the memory of long work that needs much of it: one at a time per lane, and at most `max` in
 * all. It does not bound CPU time, which the run queue shares. Work keeps its turn while it waits for
 * slices behind other work of its lane, so `max` must exceed the number of users that may be this busy
 * at the same time. Otherwise they would lock out everybody else.
 */
export class LaneTurns {
  readonly #lanes = new PerKeyQueue<undefined>()
  readonly #running: Semaphore

  constructor(max: number) {
    this.#running = new Semaphore(max)
  }

  async take<T>({ name }: Lane, work: () => Promise<T>): Promise<T> {
    const turn = this.#lanes.enter(name)
    if (turn !== undefined) await turn
    try {
      return await this.#running.take(work)
    } finally {
      this.#lanes.leave(name, undefined)
    }
  }
}
