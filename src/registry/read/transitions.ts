import type { StatusError } from '../../api/status.ts'
import { StorageError } from '../../storage/errors.ts'
import type { EventSelector, WatchItem } from '../../storage/storage.ts'
import { type ResourceNames, statusOfStorageError, watchExpired } from '../storage-errors.ts'

/**
 * How a watcher sees a change: unchanged (`natural`), or as an event that starts or stops matching its
 * selector. Undefined if the watcher does not see it.
 */
export type Transition = 'natural' | 'entered' | 'left' | undefined

export function transitionFor(item: WatchItem, selector: EventSelector | undefined): Transition {
  if (selector === undefined) return 'natural'
  const isIn = selector.matches(item.stored)
  if (item.type === 'delete' || item.previous === undefined) return isIn ? 'natural' : undefined
  const wasIn = selector.matches(item.previous)
  if (isIn) return wasIn ? 'natural' : 'entered'
  return wasIn ? 'left' : undefined
}

/** The error that ends a watch; undefined for an error that is not from storage. */
export function watchFailure(error: unknown, names: ResourceNames): StatusError | undefined {
  if (!(error instanceof StorageError)) return undefined
  return error.kind === 'compacted' ? watchExpired() : statusOfStorageError(error, names)
}
