/** Checks of a change against the stored event, with the errors of the API. */
import type { StatusError } from '../api/status.ts'
import { beginning } from '../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../storage/storage.ts'
import { clipped } from './patch/patch-document.ts'
import { readVersion } from './read/list-position.ts'
import { conflict, type ResourceNames } from './storage-errors.ts'

/** The event to update is missing, and the caller's permission to create it is not checked yet. */
export class CreationNeeded extends Error {
  override readonly name = 'CreationNeeded'
}

const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again'

/** A write may require the version it was made from; 0 requires nothing. */
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
