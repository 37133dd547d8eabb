import type { StatusError } from '../api/status.ts'
import { StorageError } from '../storage/errors.ts'
import type { EventSelector, WatchItem } from '../storage/storage.ts'
import { type ResourceNames, statusOfStorageError, watchExpired } from './storage-errors.ts'

/**
 * What a change is to a watcher: as it is, or for one who looks through a selector the coming or
 * going of an event. Undefined: nothing at all.
 */
export type Telling = 'natural' | 'entered' | 'left' | undefined

export function tellingOf(item: WatchItem, selector: EventSelector | undefined): Telling {
  if (selector === undefined) return 'natural'
  const isIn = selector.matches(item.stored)
  if (item.type === 'delete' || item.previous === undefined) return isIn ? 'natural' : undefined
  const wasIn = selector.matches(item.previous)
  if (isIn) return wasIn ? 'natural' : 'entered'
  return wasIn ? 'left' : undefined
}

/** Why a watch cannot go on; undefined for what is not the storage's doing. */
export function watchFailure(error: unknown, names: ResourceNames): StatusError | undefined {
  if (!(error instanceof StorageError)) return undefined
  return error.kind === 'compacted' ? watchExpired() : statusOfStorageError(error, names)
}
