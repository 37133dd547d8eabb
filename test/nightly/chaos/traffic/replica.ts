import type { EventStorage } from '../../../../src/storage/storage.ts'
import type { MakeStorage, StorageInstance } from './storage-instance.ts'

/** A storage instance that can crash and start again without any state. */
export class Replica {
  readonly #make: () => Promise<StorageInstance>
  #instance: StorageInstance
  #life = new AbortController()

  /** Each replica prefers another member. */
  static async start(
    index: number,
    endpoints: readonly string[],
    make: MakeStorage,
  ): Promise<Replica> {
    const start = index % endpoints.length
    const own = [...endpoints.slice(start), ...endpoints.slice(0, start)]
    return new Replica(() => make(own), await make(own))
  }

  private constructor(make: () => Promise<StorageInstance>, instance: StorageInstance) {
    this.#make = make
    this.#instance = instance
  }

  /** The current instance; read it anew for each use. */
  get storage(): EventStorage {
    return this.#instance.storage
  }

  /** Aborted from a crash until the restart: nothing that the crashed instance returns counts. */
  get life(): AbortSignal {
    return this.#life.signal
  }

  async crash(): Promise<void> {
    this.#instance.crash()
    this.#life.abort()
    this.#instance = await this.#make()
    this.#life = new AbortController()
  }

  close(): Promise<void> {
    return this.#instance.close()
  }
}
