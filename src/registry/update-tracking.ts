/** What a change that is not applied does to who owns what. */
import type { Event, ManagedFieldsEntry } from '../api/event.ts'
import { encodeEvent } from '../codec/event-json.ts'
import type { JsonObject } from '../lib/json.ts'
import {
  afterUpdate,
  areTooMany,
  isSameButForTimes,
  NO_OWNERS,
  type Owners,
  printOwners,
  readOwners,
  type ServedVersions,
  servedOnly,
  type Writing,
  withManagedFields,
} from './managed-fields.ts'
import { changesOf } from './typed-tree.ts'

/** An event as it is stored. */
export interface Before {
  readonly stored: { readonly body: Buffer }
  readonly old: Event
}

/**
 * The event with the owners that a change leaves. An event whose fields have no owners yet gets none:
 * they begin when it is first applied. `sent` are the entries that came with the change.
 */
export function tracked(
  event: Event,
  before: Before,
  change: {
    readonly sent: readonly ManagedFieldsEntry[] | undefined
    readonly served: ServedVersions
    readonly writing: () => Writing
  },
): Event {
  const { managedFields: stored } = before.old.metadata
  if (stored === undefined) return event
  if (isReset(change.sent)) return withManagedFields(event, [])
  const owners = servedOnly(ownersOf(change.sent, stored), change.served)
  const changes = changesOf(liveTree(before.stored.body), liveTree(encodeEvent(event)))
  const next = afterUpdate(owners, changes, change.writing())
  // Whoever updates does not ask for owners, and is not refused on their account.
  if (areTooMany(next)) return withManagedFields(event, [])
  return settled(event, printOwners(next), before)
}

/** With these entries; with those it had when they and the event are the same but for times. */
export function settled(
  event: Event,
  entries: readonly ManagedFieldsEntry[],
  { stored, old }: Before,
): Event {
  const { managedFields: before = [] } = old.metadata
  if (isSameButForTimes(entries, before)) {
    const unchanged = withManagedFields(event, before)
    if (encodeEvent(unchanged).equals(stored.body)) return unchanged
  }
  return withManagedFields(event, entries)
}

/** Everything of a stored event that somebody can own, as a tree that is the caller's. */
export function liveTree(body: Buffer): JsonObject {
  const tree = JSON.parse(body.toString('utf8'))
  delete tree.metadata.managedFields
  return tree
}

/** Clients say so when they want nobody to own anything any more. */
function isReset(sent: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (sent === undefined || sent.length > 1) return false
  return Object.keys(sent[0] ?? {}).length === 0
}

/** Those that were sent, if they can be read; clients who know nothing of owners change none. */
function ownersOf(
  sent: readonly ManagedFieldsEntry[] | undefined,
  stored: readonly ManagedFieldsEntry[],
): Owners {
  const given = sent === undefined ? NO_OWNERS : (readOwners(sent) ?? NO_OWNERS)
  return given.size > 0 ? given : (readOwners(stored) ?? NO_OWNERS)
}
