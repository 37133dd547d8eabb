/** Server-side apply: merges the applied fields into an event, and updates the field owners. */
import type { Event, ManagedFieldsEntry } from '../../api/event.ts'
import { eventsGroup } from '../../api/event-groups.ts'
import { decodeEventTree, encodeEvent } from '../../codec/event/event-json.ts'
import { isObject, type JsonObject } from '../../lib/json.ts'
import type { AppliedConfig } from './applied-config.ts'
import { checkConflicts, conflictsOf } from './apply-conflicts.ts'
import { difference, isSameSet, NO_FIELDS, union } from './field-set.ts'
import { allowedByLastApplied, withLastApplied } from './last-applied.ts'
import {
  afterLosses,
  areTooMany,
  beforeFirstApply,
  NO_OWNERS,
  type Owner,
  type Owners,
  ownerId,
  printOwners,
  readOwners,
  type ServedVersions,
  servedOnly,
  tooManyOwners,
  type Writing,
} from './managed-fields.ts'
import { type Changes, changesOf, merged, without } from './structured-diff.ts'
import { type Before, liveTree } from './update-tracking.ts'

export interface ApplyOptions extends Writing {
  /** Takes over fields of other owners. */
  readonly isForced: boolean
  readonly served: ServedVersions
}

export interface Applied {
  readonly event: Event
  readonly managedFields: readonly ManagedFieldsEntry[]
}

/** The manager whose client-side apply left an annotation. */
const KUBECTL = 'kubectl'

/** The group whose field names are used internally. */
const internalGroup = eventsGroup('')

const EMPTY: JsonObject = liveTree(encodeEvent({ metadata: {} }))

/**
 * The current event, or a new one, with all applied fields, and without the fields that this manager
 * applied before and nobody owns any longer. Fails with a StatusError 409 that names every field of
 * another owner that would change, or with 413 when there would be too many owners.
 */
export function applied(
  current: Before | undefined,
  config: AppliedConfig,
  options: ApplyOptions,
): Applied {
  const live = current === undefined ? EMPTY : liveTree(current.stored.body)
  const owners = current === undefined ? NO_OWNERS : ownersOf(current, live, options)
  const self = applier(config, options)
  const tree = mergedTree(live, owners, self, config.tree)
  const changes = changesOf(live, tree)

  if (!options.isForced) {
    const allowed = options.manager === KUBECTL ? allowedByLastApplied(live) : NO_FIELDS
    checkConflicts(conflictsOf(owners, changes, ownerId(self)), allowed)
  }
  const next = nextOwners(owners, self, changes)
  if (areTooMany(next)) throw tooManyOwners()
  const shown = options.manager === KUBECTL ? withLastApplied(tree, config.sent) : tree
  return { event: decodeEventTree(shown, internalGroup).event, managedFields: printOwners(next) }
}

/** If the event has no owners yet, its existing fields get the owner `before-first-apply`. */
function ownersOf({ old }: Before, live: JsonObject, options: ApplyOptions): Owners {
  const owners = readOwners(old.metadata.managedFields ?? []) ?? NO_OWNERS
  if (owners.size > 0) return servedOnly(owners, options.served)
  const first = beforeFirstApply(changesOf(EMPTY, withoutDeletion(live)), options)
  // A first apply removes no fields, so it could not reduce their number.
  if (areTooMany(first)) throw tooManyOwners()
  return first
}

/** Nobody owns the marks of a delete. */
function withoutDeletion(live: JsonObject): JsonObject {
  const { metadata } = live
  if (!isObject(metadata)) return live
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...rest } = metadata
  return { ...live, metadata: rest }
}

function applier(config: AppliedConfig, { manager, apiVersion, at }: Writing): Owner {
  const { fields } = config
  return { manager, operation: 'Apply', apiVersion, subresource: '', time: at, fields }
}

/** Removes fields without an owner before the merge, so that no applied field is removed. */
function mergedTree(live: JsonObject, owners: Owners, self: Owner, config: JsonObject): JsonObject {
  const id = ownerId(self)
  const last = owners.get(id)?.fields
  if (last === undefined) return merged(live, config)
  let claimed = self.fields
  for (const [other, { fields }] of owners) if (other !== id) claimed = union(claimed, fields)
  return merged(without(live, difference(last, claimed)), config)
}

function nextOwners(owners: Owners, self: Owner, changes: Changes): Owners {
  const id = ownerId(self)
  const last = owners.get(id)
  const next = new Map(afterLosses(owners, changes, id))
  next.delete(id)
  if (self.fields.size === 0) return next
  const isSame =
    last !== undefined &&
    last.apiVersion === self.apiVersion &&
    changes.set.size === 0 &&
    changes.removed.size === 0 &&
    isSameSet(last.fields, self.fields)
  return next.set(id, isSame ? last : self)
}
