import { PerKeyQueue } from '../../lib/per-key-queue.ts'
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
 * object that it counts. An owner has one of the places at most, so that another one need not wait
 * for all that the first has asked for.
 */
const concurrency = 2

/** Summaries of the events in memory. */
export class SummaryStorage implements EventSummaries {
  readonly #memory: EventMemory
  readonly #freshness: Pick<Freshness, 'isFresh'>
  readonly #running = new Semaphore(concurrency)
  readonly #owners = new PerKeyQueue<undefined>()

  constructor({
    memory,
    freshness,
  }: { memory: EventMemory; freshness: Pick<Freshness, 'isFresh'> }) {
    this.#memory = memory
    this.#freshness = freshness
  }

  summarize(scope: EventScope, options: SummaryOptions): Promise<EventSummary> {
    return this.#run(options, (state) => summarize(this.#memory, state, { ...options, scope }))
  }

  histogram(scope: EventScope, options: HistogramOptions): Promise<EventHistogram> {
    return this.#run(options, (state) => histogram(this.#memory, state, { ...options, scope }))
  }

  async #run<T>(
    { owner = '', ...options }: ReadOptions & { readonly owner?: string | undefined },
    compute: (state: State) => Promise<T>,
  ): Promise<T> {
    await this.#owners.enter(owner)
    try {
      return await this.#take(options, compute)
    } finally {
      this.#owners.leave(owner, undefined)
    }
  }

  #take<T>(options: ReadOptions, compute: (state: State) => Promise<T>): Promise<T> {
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
