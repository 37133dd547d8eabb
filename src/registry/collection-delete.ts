/** Deletes the events of a list in slices, so that other writes can run in between. */
import { setImmediate } from 'node:timers/promises'
import { isStatus, StatusError, timedOut } from '../api/status.ts'
import { Semaphore } from '../lib/semaphore.ts'
import { StorageError } from '../storage/errors.ts'
import type { EventSelector, StoredEvent } from '../storage/storage.ts'
import type { EventRegistry } from './registry.ts'
import { statusOfStorageError } from './storage-errors.ts'
import type { DeleteOptions } from './writes.ts'

/** Concurrent deletes of one collection: as many as fit into one transaction. */
const sliceItems = 100
/** Every event is decoded before it is deleted, which takes some 10 ms for this many bytes. */
const sliceBytes = 256 * 1024
/** Concurrent slices of all collections: just enough to keep the datastore busy. */
const slicesMax = 2

/** Shared by all collection deletes in one datastore. */
export function removalSemaphore(): Semaphore {
  return new Semaphore(slicesMax)
}

export interface RemovalOptions {
  /** The selector of the list. An event that no longer matches it is not deleted. */
  readonly selector: EventSelector | undefined
  readonly deletion: DeleteOptions
  /** Prevents further slices from starting; a slice that has started is completed. */
  readonly signal: AbortSignal
}

export class CollectionDelete {
  readonly #registry: EventRegistry
  readonly #semaphore: Semaphore

  constructor(registry: EventRegistry, semaphore: Semaphore) {
    this.#registry = registry
    this.#semaphore = semaphore
  }

  /**
   * Deletes the listed events, but not events recreated since under the same names. Skips events
   * that are already deleted. Stops after the first slice with another failure.
   */
  async remove(
    pieces: AsyncIterable<readonly StoredEvent[]>,
    options: RemovalOptions,
  ): Promise<void> {
    let isBegun = false
    try {
      for await (const events of pieces) {
        for (const slice of slicesOf(events)) {
          await this.#semaphore.take(async () => {
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
          isTarget: (current) =>
            current.version === listed.version || isStillSelected(current, listed, selector),
        }),
      ),
    )
  }

  /** Rewords datastore errors, which would say that nothing was done. */
  #partlyDone(error: unknown): unknown {
    if (!(error instanceof StatusError && error.cause instanceof StorageError)) return error
    return statusOfStorageError(error.cause, this.#registry.names, { isPartlyDone: true })
  }
}

/** Whether the current event is the listed one, and would be listed again. */
function isStillSelected(
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

/** Throws the first failure; one with an unknown outcome takes precedence. */
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
