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
 * object that it counts.
 */
const concurrency = 2

/** Summaries of the events in memory. */
export class SummaryStorage implements EventSummaries {
  readonly #memory: EventMemory
  readonly #freshness: Freshness
  readonly #running = new Semaphore(concurrency)

  constructor({ memory, freshness }: { memory: EventMemory; freshness: Freshness }) {
    this.#memory = memory
    this.#freshness = freshness
  }

  summarize(scope: EventScope, options: SummaryOptions): Promise<EventSummary> {
    return this.#run(options, (state) => summarize(this.#memory, state, { ...options, scope }))
  }

  histogram(scope: EventScope, options: HistogramOptions): Promise<EventHistogram> {
    return this.#run(options, (state) => histogram(this.#memory, state, { ...options, scope }))
  }

  #run<T>(options: ReadOptions, compute: (state: State) => Promise<T>): Promise<T> {
    return this.#running.take(async () => {
      throwIfAborted(options.signal)
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
