/** Updates the field owners after a write other than an apply. */
import type { Event, ManagedFieldsEntry } from '../../api/event.ts'
import { encodeEvent } from '../../codec/event/event-json.ts'
import type { JsonObject } from '../../lib/json.ts'
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
import { changesOf } from './structured-diff.ts'

/** The stored event before the write. */
export interface Before {
  readonly stored: { readonly body: Buffer }
  readonly old: Event
}

/**
 * The event with its owners after a change. An event without owners gets none: ownership starts with
 * the first apply. `sent` is the managedFields of the request.
 */
export function tracked(
  event: Event,
  before: Before,
  change: {
    readonly sent: readonly ManagedFieldsEntry[] | undefined
    readonly served: ServedVersions
    readonly writing: () => Writing
    /** See `EventGroup`. */
    readonly shownWhenEmpty?: readonly string[]
  },
): Event {
  const { managedFields: stored } = before.old.metadata
  if (stored === undefined) return event
  if (isReset(change.sent)) return withManagedFields(event, [])
  const owners = servedOnly(ownersOf(change.sent, stored), change.served)
  const old = liveTree(before.stored.body)
  const now = liveTree(encodeEvent(event))
  for (const name of change.shownWhenEmpty ?? []) {
    // Clients of this group see the field as empty, not as removed, so its writer owns it.
    if (name in old && !(name in now)) now[name] = ''
  }
  const changes = changesOf(old, now)
  const next = afterUpdate(owners, changes, change.writing())
  // The client of an update did not request owners, so it must not fail because of them.
  if (areTooMany(next)) return withManagedFields(event, [])
  return settled(event, printOwners(next), before)
}

/** The event with these entries, or with its old ones if only times would change. */
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

/** The fields of a stored event that can have owners, as a new tree. */
export function liveTree(body: Buffer): JsonObject {
  const tree = JSON.parse(body.toString('utf8'))
  delete tree.metadata.managedFields
  return tree
}

/** Whether the client wants to remove all owners: it sends an empty list, or one empty entry. */
function isReset(sent: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (sent === undefined || sent.length > 1) return false
  return Object.keys(sent[0] ?? {}).length === 0
}

/** The owners in the request if they are valid, otherwise the stored ones. */
function ownersOf(
  sent: readonly ManagedFieldsEntry[] | undefined,
  stored: readonly ManagedFieldsEntry[],
): Owners {
  const given = sent === undefined ? NO_OWNERS : (readOwners(sent) ?? NO_OWNERS)
  return given.size > 0 ? given : (readOwners(stored) ?? NO_OWNERS)
}
