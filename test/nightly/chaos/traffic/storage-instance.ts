import type { EventStorage } from '../../../../src/storage/storage.ts'

/** The storage of one replica, with its own connections. */
export interface StorageInstance {
  readonly storage: EventStorage
  /** Ends it in the middle of its work: to etcd this looks like a killed process. */
  crash(): void
  /** Ends it when the work in progress is done. */
  close(): Promise<void>
}

/** The first endpoint is the preferred one. */
export type MakeStorage = (endpoints: readonly string[]) => Promise<StorageInstance>
