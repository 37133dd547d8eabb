import type { EventStorage } from '../../../src/storage/storage.ts'

/** One replica's storage, with connections of its own. */
export interface StorageInstance {
  readonly storage: EventStorage
  /** Ends it in the middle of whatever it does: what a kill of its process looks like to etcd. */
  crash(): void
  /** Ends it when what was begun has ended. */
  close(): Promise<void>
}

/** The first endpoint is the one to prefer. */
export type MakeStorage = (endpoints: readonly string[]) => Promise<StorageInstance>
