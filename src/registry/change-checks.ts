/** Checks a change against the stored event; failures are API errors. */
import type { StatusError } from '../api/status.ts'
import { beginning, formatVersion } from '../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../storage/storage.ts'
import { clipped } from './patch/patch-document.ts'
import { readVersion } from './read/list-position.ts'
import { conflict, preconditionFailed, type ResourceNames } from './storage-errors.ts'
import type { CurrentEvent } from './stored-event.ts'

/** The event to update is missing, and the caller's permission to create it is not checked yet. */
export class CreationNeeded extends Error {
  override readonly name = 'CreationNeeded'
}

const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again'

/** A write may require the version that it was based on; 0 requires nothing. */
export function checkVersion(
  names: ResourceNames,
  { key, version }: Pick<StoredEvent, 'key' | 'version'>,
  sent = '',
): void {
  const made = readVersion(sent)
  if (made === undefined || made === beginning || made === version) return
  throw conflict(names, key.name, MODIFIED)
}

/** An update may require the UID of the event. */
export function checkUid(
  names: ResourceNames,
  key: EventKey,
  { sent, stored }: { readonly sent: string | undefined; readonly stored: string | undefined },
): void {
  if (sent === undefined || sent === stored) return
  const why = `the UID in the object (${clipped(sent)}) does not match the UID of the stored object (${stored ?? ''})`
  throw conflict(names, key.name, why)
}

/** The error for an apply with a UID to an event that does not exist. */
export function noSuchUid(names: ResourceNames, key: EventKey, sent: string): StatusError {
  const why = `uid mismatch: the provided object specified uid ${clipped(sent)}, and no existing object was found`
  return conflict(names, key.name, why)
}

/** The event that a delete is restricted to. */
export interface Preconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

/** Throws a 409 if the stored event does not match. */
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

/** The 409 for an event that is to be deleted only if it is damaged. */
export function notDamaged(names: ResourceNames, { name }: EventKey): StatusError {
  const why =
    'the stored event can be decoded; delete it without ignoreStoreReadErrorWithClusterBreakingPotential'
  return conflict(names, name, why)
}

/** The 409 for a stored value that cannot be decoded, so that its UID is unknown. */
export function unknownUid({ name }: EventKey): Error {
  return preconditionFailed(
    name,
    'the UID in the precondition cannot be checked: the stored value cannot be decoded as an event',
  )
}
