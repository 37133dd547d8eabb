/**
 * The values that this replica has written and not yet seen in its watch. Most come back within
 * milliseconds with the same bytes, and then need not be parsed and validated again. Nothing depends
 * on an entry: without one, or with other bytes, the value is opened like any other.
 *
 * An entry ends when its value comes back, or when the write turns out not to be applied. Entries
 * would accumulate while the watch is interrupted, so the oldest are dropped.
 */
import { type EventFields, fieldsIn } from './event-fields.ts'
import { isBodyOf, type PreparedValue } from './stored-form.ts'

/** A put, or a delete, which has no value. */
interface Write {
  /** The key in the store. */
  readonly key: string
  readonly value: PreparedValue | undefined
}

export interface OwnWritesBounds {
  readonly writesMax: number
  /** The size of the bodies; the events that were encoded take a few times as much. */
  readonly bytesMax: number
}

/** A few times what is in flight at once; see etcd/group-commit.ts. */
const defaultBounds: OwnWritesBounds = { writesMax: 1_000, bytesMax: 4 * 1024 * 1024 }

export class OwnWrites {
  readonly #bounds: OwnWritesBounds
  /** Keyed by the key in the store, oldest first. */
  readonly #values = new Map<string, PreparedValue>()
  #bytes = 0

  constructor(bounds: OwnWritesBounds = defaultBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#values.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The writes are about to be sent, the first time or again. */
  sending(writes: readonly Write[]): void {
    for (const { key, value } of writes) {
      // A later write of the key replaces an earlier one, which is then parsed when it comes back.
      this.#drop(key)
      if (value?.event === undefined) continue
      this.#values.set(key, value)
      this.#bytes += value.bytes.length
    }
    this.#evict()
  }

  /** The write was not applied, or it is not known whether it was. */
  failed({ key, value }: Write): void {
    if (value !== undefined && this.#values.get(key) === value) this.#drop(key)
  }

  /** The fields of a body that was read, if this replica wrote these bytes under this key. */
  take(key: string, body: Buffer): EventFields | undefined {
    const value = this.#values.get(key)
    if (value?.event === undefined || !isBodyOf(value, body)) return undefined
    this.#drop(key)
    return fieldsIn(value.event)
  }

  #drop(key: string): void {
    const value = this.#values.get(key)
    if (value === undefined) return
    this.#values.delete(key)
    this.#bytes -= value.bytes.length
  }

  #evict(): void {
    const { writesMax, bytesMax } = this.#bounds
    for (const key of this.#values.keys()) {
      if (this.#values.size <= writesMax && this.#bytes <= bytesMax) return
      this.#drop(key)
    }
  }
}
