/** Server-side apply: what an event becomes when somebody applies a part of it. */
import type { Event, ManagedFieldsEntry } from '../api/event.ts'
import { eventsGroup } from '../api/event-groups.ts'
import { decodeEventTree, encodeEvent } from '../codec/event-json.ts'
import type { JsonObject } from '../lib/json.ts'
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
import { type Changes, changesOf, merged, without } from './typed-tree.ts'
import { type Before, liveTree } from './update-tracking.ts'

export interface ApplyOptions extends Writing {
  /** Take what others own. */
  readonly isForced: boolean
  readonly served: ServedVersions
}

export interface Applied {
  readonly event: Event
  readonly managedFields: readonly ManagedFieldsEntry[]
}

/** The manager that old kubectls left an annotation for. */
const KUBECTL = 'kubectl'

/** The names in which events are kept. */
const inside = eventsGroup('')

const EMPTY: JsonObject = liveTree(encodeEvent({ metadata: {} }))

/**
 * The event that is there, or a new one, with everything that is applied, and without what this
 * manager applied before and nobody claims any more. Fails with a StatusError 409 that names every
 * field that would be taken from somebody, or 413 when there would be too many owners.
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
  return { event: decodeEventTree(shown, inside).event, managedFields: printOwners(next) }
}

/** Whatever is there when nobody owns anything belongs to whoever came before. */
function ownersOf({ old }: Before, live: JsonObject, options: ApplyOptions): Owners {
  const owners = readOwners(old.metadata.managedFields ?? []) ?? NO_OWNERS
  if (owners.size > 0) return servedOnly(owners, options.served)
  const first = beforeFirstApply(changesOf(EMPTY, live), options)
  // A first apply takes no field away, so that nothing it does could make them fewer.
  if (areTooMany(first)) throw tooManyOwners()
  return first
}

function applier(config: AppliedConfig, { manager, apiVersion, at }: Writing): Owner {
  const { fields } = config
  return { manager, operation: 'Apply', apiVersion, subresource: '', time: at, fields }
}

/** What nobody claims any more goes first, so that what is applied stays whatever else goes. */
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
