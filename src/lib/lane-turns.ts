import { PerKeyQueue } from './per-key-queue.ts'
import type { Lane } from './run-queue.ts'
import { Semaphore } from './semaphore.ts'

/**
 * Bounds the memory of long work that holds much of it: one at a time for each lane, and at most
 * `max` in all. It is no bound on CPU time, which the run queue shares. Work holds its place while
 * it waits for slices behind other work of its lane, so `max` must be larger than the number of
 * users who may be that busy at a time: they would keep the places from everybody else.
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
