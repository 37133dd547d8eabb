import type { Event } from '../api/event.ts'
import { readEncoded } from '../codec/event/event-json.ts'
import { StorageError } from '../storage/errors.ts'
import type { StoredEvent } from '../storage/storage.ts'

/** A stored event with its decoded form. */
export interface CurrentEvent {
  readonly stored: StoredEvent
  readonly old: Event
}

/** Fails with `corrupt` when the stored value is not an event. */
export function readEvent({ key, body }: StoredEvent): Event {
  try {
    return readEncoded(body)
  } catch (cause) {
    const message = `the stored value of ${key.namespace}/${key.name} is not an event`
    throw new StorageError({ kind: 'corrupt', message, key, cause })
  }
}

/**
 * The event, unless it would retain much more memory than its own size: its strings may be slices of
 * the request body, which has `sentBytes`.
 */
export function keptEvent(
  event: Event,
  body: Buffer,
  sentBytes: number | undefined,
): Event | undefined {
  return sentBytes !== undefined && sentBytes <= 2 * body.length ? event : undefined
}
