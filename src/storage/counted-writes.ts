/**
 * Counts what the writes of one kind of writer did to the store. Each writer has its own counts:
 * created minus deleted, over all writers and replicas, is the number of stored events.
 */
import { StorageError } from './errors.ts'
import type {
  Change,
  CreateOptions,
  DeleteOptions,
  EventKey,
  EventWrites,
  Guard,
  KnownEvent,
  StoredEvent,
  UpdateOptions,
} from './storage.ts'

export const CHANGE_KINDS = ['created', 'updated', 'deleted'] as const
export type ChangeKind = (typeof CHANGE_KINDS)[number]

/** `unknown`: the store did not respond in time, so the write may have been applied or may not. */
export const WRITE_OUTCOMES = ['applied', 'unknown'] as const
export type WriteOutcome = (typeof WRITE_OUTCOMES)[number]

export class CountedWrites implements EventWrites {
  readonly counts: Readonly<Record<WriteOutcome, Record<ChangeKind, number>>> = {
    applied: { created: 0, updated: 0, deleted: 0 },
    unknown: { created: 0, updated: 0, deleted: 0 },
  }
  readonly #store: EventWrites
  readonly #known: (key: EventKey) => KnownEvent | undefined

  /** `known` returns what a cache has, which saves reads of the store. */
  constructor(
    store: EventWrites,
    known: (key: EventKey) => KnownEvent | undefined = () => undefined,
  ) {
    this.#store = store
    this.#known = known
  }

  create(key: EventKey, body: Buffer, options?: CreateOptions): Promise<StoredEvent> {
    return this.#counted(this.#store.create(key, body, options), () => 'created')
  }

  update(key: EventKey, change: Change, options?: UpdateOptions): Promise<StoredEvent> {
    let kind: ChangeKind | undefined
    const noted: Change = (current) => {
      kind = undefined
      const wanted = change(current)
      kind = kindOf(current, wanted)
      return wanted
    }
    return this.#counted(
      this.#store.update(key, noted, { known: this.#known(key), ...options }),
      () => kind,
    )
  }

  delete(key: EventKey, guard?: Guard, options?: DeleteOptions): Promise<StoredEvent> {
    const known = this.#known(key)
    return this.#counted(this.#store.delete(key, guard, { known, ...options }), () => 'deleted')
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
