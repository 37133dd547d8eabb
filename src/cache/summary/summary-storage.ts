import { LaneTurns } from '../../lib/lane-turns.ts'
import { throwIfAborted } from '../../storage/aborted-read.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventScope, ListOptions } from '../../storage/storage.ts'
import type {
  EventHistogram,
  EventSummaries,
  EventSummary,
  HistogramOptions,
  SummaryOptions,
} from '../../storage/summary.ts'
import type { Freshness } from '../freshness.ts'
import type { EventMemory, State } from '../memory/memory.ts'
import { histogram } from './histogram.ts'
import { summarize } from './summarize.ts'

/** Each summary holds some 20 bytes for each object that it counts: 20 MB for a million. */
const summariesMax = 8

/** Summaries of the events in memory. */
export class SummaryStorage implements EventSummaries {
  readonly #memory: EventMemory
  readonly #freshness: Pick<Freshness, 'isFresh'>
  readonly #turns = new LaneTurns(summariesMax)

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

  #run<T>(
    options: Pick<ListOptions, 'notOlderThan' | 'signal' | 'lane'>,
    compute: (state: State) => Promise<T>,
  ): Promise<T> {
    const { lane, signal } = options
    return this.#turns.take(lane, async () => {
      // Waits before the state is read: the first slice may have to wait as well.
      const entered = lane.enter(signal)
      if (entered !== undefined) await entered
      throwIfAborted(signal)
      if (!(await this.#freshness.isFresh(options))) throw notLoaded()
      const state = this.#memory.peek()
      // The pin outlasts the last counted event: texts are read afterwards.
      using _pin = this.#memory.pin(state)
      return await compute(state)
    })
  }
}

function notLoaded(): StorageError {
  const reason = 'summaries can be computed only once all events are loaded, which is under way'
  return new StorageError({ kind: 'unavailable', message: reason, reason })
}
