import type { Event } from '../api/event.ts'
import { readEncoded } from '../codec/event-json.ts'
import { StorageError } from '../storage/errors.ts'
import type { StoredEvent } from '../storage/storage.ts'

/** An event as it is stored, read. */
export interface CurrentEvent {
  readonly stored: StoredEvent
  readonly old: Event
}

/** What is stored, read. Fails with `corrupt` when it is no event. */
export function readEvent({ key, body }: StoredEvent): Event {
  try {
    return readEncoded(body)
  } catch (cause) {
    const message = `what is stored as event ${key.namespace}/${key.name} is not an event`
    throw new StorageError({ kind: 'corrupt', message, key, cause })
  }
}
