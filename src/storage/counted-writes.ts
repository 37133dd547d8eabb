/**
 * Counts what the writes of one kind of writer did to the store. Each of them has its own counts, so
 * that created minus deleted, over all writers and replicas, is what is stored.
 */
import type { Traced } from '../lib/tracing/span.ts'
import { StorageError } from './errors.ts'
import type { Change, EventKey, EventStorage, Guard, StoredEvent } from './storage.ts'
import type { CreateOptions, UpdateOptions } from './write-options.ts'

export const CHANGE_KINDS = ['created', 'updated', 'deleted'] as const
export type ChangeKind = (typeof CHANGE_KINDS)[number]

/** `unknown`: the store did not respond in time, so the write may have been applied or may not. */
export const WRITE_OUTCOMES = ['applied', 'unknown'] as const
export type WriteOutcome = (typeof WRITE_OUTCOMES)[number]

export type EventWrites = Pick<EventStorage, 'create' | 'update' | 'delete'>

export class CountedWrites implements EventWrites {
  readonly counts: Readonly<Record<WriteOutcome, Record<ChangeKind, number>>> = {
    applied: { created: 0, updated: 0, deleted: 0 },
    unknown: { created: 0, updated: 0, deleted: 0 },
  }
  readonly #inner: EventWrites

  constructor(inner: EventWrites) {
    this.#inner = inner
  }

  create(key: EventKey, body: Buffer, options?: CreateOptions): Promise<StoredEvent> {
    return this.#counted(this.#inner.create(key, body, options), () => 'created')
  }

  update(key: EventKey, change: Change, options?: UpdateOptions): Promise<StoredEvent> {
    let kind: ChangeKind | undefined
    const noted: Change = (current) => {
      kind = undefined
      const wanted = change(current)
      kind = kindOf(current, wanted)
      return wanted
    }
    return this.#counted(this.#inner.update(key, noted, options), () => kind)
  }

  delete(key: EventKey, guard?: Guard, options?: Traced): Promise<StoredEvent> {
    return this.#counted(this.#inner.delete(key, guard, options), () => 'deleted')
  }

  #counted(
    write: Promise<StoredEvent>,
    kindOfLast: () => ChangeKind | undefined,
  ): Promise<StoredEvent> {
    return write.then(
      (stored) => {
        this.#count('applied', kindOfLast())
        return stored
      },
      (error) => {
        if (error instanceof StorageError && error.kind === 'timeout') {
          this.#count('unknown', kindOfLast())
        }
        throw error
      },
    )
  }

  #count(outcome: WriteOutcome, kind: ChangeKind | undefined): void {
    if (kind !== undefined) this.counts[outcome][kind] += 1
  }
}

/** Undefined when nothing is written. */
function kindOf(
  current: StoredEvent | undefined,
  wanted: ReturnType<Change>,
): ChangeKind | undefined {
  if (wanted === 'remove') return current === undefined ? undefined : 'deleted'
  if (wanted === undefined || wanted === current?.body) return undefined
  return current === undefined ? 'created' : 'updated'
}
