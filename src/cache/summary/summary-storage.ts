import { PerKeyQueue } from '../../lib/per-key-queue.ts'
import type { Lane } from '../../lib/run-queue.ts'
import { Semaphore } from '../../lib/semaphore.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventScope, ReadOptions } from '../../storage/storage.ts'
import type {
  EventHistogram,
  EventSummaries,
  EventSummary,
  HistogramOptions,
  SummaryOptions,
} from '../../storage/summary.ts'
import { throwIfAborted } from '../aborted-read.ts'
import type { Freshness } from '../freshness.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { histogram } from './histogram.ts'
import { summarize } from './summarize.ts'

/**
 * Summaries keep one thread busy, so more at once are not faster. Each holds some 20 bytes for each
 * object that it counts. A lane has one of the places at most, so that another one need not wait
 * for all that the first has asked for.
 */
const concurrency = 2

/** Summaries of the events in memory. */
export class SummaryStorage implements EventSummaries {
  readonly #memory: EventMemory
  readonly #freshness: Pick<Freshness, 'isFresh'>
  readonly #running = new Semaphore(concurrency)
  readonly #lanes = new PerKeyQueue<undefined>()
  readonly #lane: Lane

  constructor({
    memory,
    freshness,
    lane,
  }: { memory: EventMemory; freshness: Pick<Freshness, 'isFresh'>; lane: Lane }) {
    this.#memory = memory
    this.#freshness = freshness
    this.#lane = lane
  }

  summarize(scope: EventScope, options: SummaryOptions): Promise<EventSummary> {
    return this.#run(options, (state, lane) =>
      summarize(this.#memory, state, { ...options, scope, lane }),
    )
  }

  histogram(scope: EventScope, options: HistogramOptions): Promise<EventHistogram> {
    return this.#run(options, (state, lane) =>
      histogram(this.#memory, state, { ...options, scope, lane }),
    )
  }

  async #run<T>(
    options: ReadOptions,
    compute: (state: State, lane: Lane) => Promise<T>,
  ): Promise<T> {
    const { lane = this.#lane } = options
    await this.#lanes.enter(lane.name)
    try {
      return await this.#take(options, (state) => compute(state, lane))
    } finally {
      this.#lanes.leave(lane.name, undefined)
    }
  }

  #take<T>(options: ReadOptions, compute: (state: State) => Promise<T>): Promise<T> {
    const { lane = this.#lane, signal } = options
    return this.#running.take(async () => {
      // Before the state is read: the first slice may have to wait, too.
      const entered = lane.enter(signal)
      if (entered !== undefined) await entered
      throwIfAborted(signal)
      if (!(await this.#freshness.isFresh(options))) throw notLoaded()
      const state = this.#memory.peek()
      // Also after the last event was counted: texts are read then.
      using _pin = this.#memory.pin(state)
      return await compute(state)
    })
  }
}

function notLoaded(): StorageError {
  const reason = 'summaries can be computed only once all events are loaded, which is under way'
  return new StorageError({ kind: 'unavailable', message: reason, reason })
}
