/** What a change is refused for, in the words of the API, once it is known what is there. */
import type { StatusError } from '../api/status.ts'
import { beginning } from '../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../storage/storage.ts'
import { clipped } from './draft.ts'
import { readVersion } from './list-position.ts'
import { conflict, type ResourceNames } from './storage-errors.ts'

/** There is no such event, and whoever would replace it has not been allowed to create it. */
export class CreationNeeded extends Error {
  override readonly name = 'CreationNeeded'
}

const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again'

/** A write may say which version it was made from; 0 says nothing. */
export function checkVersion(
  names: ResourceNames,
  { key, version }: Pick<StoredEvent, 'key' | 'version'>,
  sent = '',
): void {
  const made = readVersion(sent)
  if (made === undefined || made === beginning || made === version) return
  throw conflict(names, key.name, MODIFIED)
}

/** An update may say which event of that name it is about. */
export function checkUid(
  names: ResourceNames,
  key: EventKey,
  { sent, stored }: { readonly sent: string | undefined; readonly stored: string | undefined },
): void {
  if (sent === undefined || sent === stored) return
  const why = `the UID in the object (${clipped(sent)}) is not that of the stored one (${stored ?? ''})`
  throw conflict(names, key.name, why)
}

/** An apply names an event, and there is none. */
export function noSuchUid(names: ResourceNames, key: EventKey, sent: string): StatusError {
  const why = `uid mismatch: the provided object specified uid ${clipped(sent)}, and no existing object was found`
  return conflict(names, key.name, why)
}
