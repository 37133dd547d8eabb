import type { EventKey, StoredEvent } from '../../../../src/storage/storage.ts'
import type { Seen } from '../model/history.ts'

/** `namespace/name`, as in histories. */
export function keyText({ namespace, name }: EventKey): string {
  return `${namespace}/${name}`
}

/** The smallest possible event: a run needs many events, not large ones. */
export function bodyOf({ namespace, name }: EventKey, value: string): Buffer {
  return Buffer.from(JSON.stringify({ metadata: { name, namespace }, note: value }))
}

export function readValue(body: Buffer): string {
  const { note } = JSON.parse(body.toString()) as { readonly note: string }
  return note
}

export function seenOf(stored: StoredEvent): NonNullable<Seen> {
  return { value: readValue(stored.body), version: stored.version }
}
