import { formatVersion } from '../storage/resource-version.ts'
import type { EventKey } from '../storage/storage.ts'
import { clipped } from './draft.ts'
import { preconditionFailed } from './storage-errors.ts'
import type { CurrentEvent } from './stored-event.ts'

/** What a delete was meant for. */
export interface Preconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

/** Throws the 409 that a delete of something else is answered with. */
export function checkPreconditions(
  key: EventKey,
  current: CurrentEvent,
  wanted: Preconditions,
): void {
  const uid = current.old.metadata.uid ?? ''
  if (wanted.uid !== undefined && wanted.uid !== uid) {
    throw preconditionFailed(
      key.name,
      `the UID in the precondition (${clipped(wanted.uid)}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    )
  }
  const version = formatVersion(current.stored.version)
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== version) {
    throw preconditionFailed(
      key.name,
      `the ResourceVersion in the precondition (${clipped(wanted.resourceVersion)}) does not match the ResourceVersion in record (${version}). The object might have been modified`,
    )
  }
}

/** The same for an event that cannot be read, whose UID nobody knows. */
export function unknownUid({ name }: EventKey): Error {
  return preconditionFailed(
    name,
    'the UID in the precondition cannot be compared: what is stored cannot be read as an event',
  )
}
