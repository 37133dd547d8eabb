/** Deleting many events: in slices that leave room for what others write, and only what was meant. */
import { setImmediate } from 'node:timers/promises'
import { isStatus, StatusError, timedOut } from '../api/status.ts'
import { StorageError } from '../storage/errors.ts'
import type { EventSelector, StoredEvent } from '../storage/storage.ts'
import type { EventRegistry } from './registry.ts'
import { statusOfStorageError } from './storage-errors.ts'
import { Turns } from './turns.ts'
import type { DeleteOptions } from './writes.ts'

/** Of one collection under way at once: what fits into one transaction. */
const sliceItems = 100
/** Every event is read before it goes; reading so many bytes takes some 10 ms. */
const sliceBytes = 256 * 1024
/** Of all collections: so many that the datastore is kept busy, and no more. */
const slicesUnderWay = 2

/** For all who delete collections in one datastore. */
export function removalTurns(): Turns {
  return new Turns(slicesUnderWay)
}

export interface RemovalOptions {
  /** What the events were chosen by. One that was changed since, and is not chosen any more, stays. */
  readonly selector: EventSelector | undefined
  readonly deletion: DeleteOptions
  /** No slice begins after its end; one that has begun ends. */
  readonly signal: AbortSignal
}

export class EventRemover {
  readonly #registry: EventRegistry
  readonly #turns: Turns

  constructor(registry: EventRegistry, turns: Turns) {
    this.#registry = registry
    this.#turns = turns
  }

  /**
   * Deletes each of them, and nothing that took the place of one since. Those that are gone already
   * do not matter; it stops at the slice in which one cannot be deleted.
   */
  async remove(
    pieces: AsyncIterable<readonly StoredEvent[]>,
    options: RemovalOptions,
  ): Promise<void> {
    let isBegun = false
    try {
      for await (const events of pieces) {
        for (const slice of slicesOf(events)) {
          await this.#turns.take(async () => {
            if (options.signal.aborted) throw timedOut({ cause: options.signal.reason })
            const outcomes = await this.#removeSlice(slice, options)
            isBegun ||= !options.deletion.isDryRun && outcomes.some(isDone)
            throwFailure(outcomes)
          })
          await setImmediate()
        }
      }
    } catch (error) {
      throw isBegun ? this.#partlyDone(error) : error
    }
  }

  #removeSlice(
    slice: readonly StoredEvent[],
    { selector, deletion }: RemovalOptions,
  ): Promise<readonly Outcome[]> {
    return Promise.allSettled(
      slice.map((listed) =>
        this.#registry.delete(listed.key, {
          ...deletion,
          isMeant: (current) =>
            current.version === listed.version || isStillMeant(current, listed, selector),
        }),
      ),
    )
  }

  /** The datastore's own refusals would say that nothing was done. */
  #partlyDone(error: unknown): unknown {
    if (!(error instanceof StatusError && error.cause instanceof StorageError)) return error
    return statusOfStorageError(error.cause, this.#registry.names, { isPartlyDone: true })
  }
}

/** Whether what is there now is the event that was listed, and would be listed again. */
function isStillMeant(
  current: StoredEvent,
  listed: StoredEvent,
  selector: EventSelector | undefined,
): boolean {
  return current.fields.uid === listed.fields.uid && (selector?.matches(current) ?? true)
}

type Outcome = PromiseSettledResult<unknown>

function isDone({ status }: Outcome): boolean {
  return status === 'fulfilled'
}

/** The first failure; before all others one that leaves open what happened. */
function throwFailure(outcomes: readonly Outcome[]): void {
  const failures = outcomes
    .filter((outcome) => outcome.status === 'rejected')
    .map(({ reason }) => reason)
    .filter((error) => !isStatus(error, 'NotFound'))
  if (failures.length > 0) throw failures.find((error) => isStatus(error, 'Timeout')) ?? failures[0]
}

function* slicesOf(events: readonly StoredEvent[]): Generator<readonly StoredEvent[]> {
  let slice: StoredEvent[] = []
  let bytes = 0
  for (const event of events) {
    const isFull = slice.length === sliceItems || bytes + event.body.length > sliceBytes
    if (isFull && slice.length > 0) {
      yield slice
      slice = []
      bytes = 0
    }
    slice.push(event)
    bytes += event.body.length
  }
  if (slice.length > 0) yield slice
}
