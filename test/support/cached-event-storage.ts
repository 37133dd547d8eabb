import { CachedStorage, type CachedStorageOptions } from '../../src/cache/cached-storage.ts'
import { CountedWrites } from '../../src/storage/counted-writes.ts'
import type {
  Change,
  CreateOptions,
  DeleteOptions,
  EventKey,
  EventStorage,
  Guard,
  StoredEvent,
  UpdateOptions,
} from '../../src/storage/storage.ts'

/** The cache and the store below it as one storage, with the writes that the engine makes of them. */
export class CachedEventStorage extends CachedStorage implements EventStorage {
  readonly #writes: CountedWrites

  constructor(options: CachedStorageOptions) {
    super(options)
    this.#writes = new CountedWrites(options.inner, (key) => this.known(key))
  }

  create(key: EventKey, body: Buffer, options?: CreateOptions): Promise<StoredEvent> {
    return this.#writes.create(key, body, options)
  }

  update(key: EventKey, change: Change, options?: UpdateOptions): Promise<StoredEvent> {
    return this.#writes.update(key, change, options)
  }

  delete(key: EventKey, guard?: Guard, options?: DeleteOptions): Promise<StoredEvent> {
    return this.#writes.delete(key, guard, options)
  }
}
