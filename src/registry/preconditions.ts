import { formatVersion } from '../storage/resource-version.ts'
import type { EventKey } from '../storage/storage.ts'
import { clipped } from './patch/patch-document.ts'
import { preconditionFailed } from './storage-errors.ts'
import type { CurrentEvent } from './stored-event.ts'

/** The event that a delete requires. */
export interface Preconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

/** Throws a 409 if the stored event is another one. */
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

/** The 409 for a stored value that cannot be decoded: its UID is not known. */
export function unknownUid({ name }: EventKey): Error {
  return preconditionFailed(
    name,
    'the UID in the precondition cannot be checked: the stored value cannot be decoded as an event',
  )
}
