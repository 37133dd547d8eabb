/** Field ownership: which manager owns which fields. Reads, updates and writes managedFields. */
import { isDeepStrictEqual } from 'node:util'
import type { Event, ManagedFieldsEntry } from '../../api/event.ts'
import { fromCoreName, toCoreName } from '../../api/event-groups.ts'
import { entityTooLarge, type StatusError } from '../../api/status.ts'
import {
  compareTexts,
  difference,
  type FieldSet,
  fieldSetOfV1,
  fieldsV1Of,
  NO_FIELDS,
  renamedTop,
  sizeOf,
  union,
} from './field-set.ts'
import type { Changes } from './structured-diff.ts'

export interface Owner {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  /** The API version whose field names the owner uses. */
  readonly apiVersion: string
  readonly subresource: string
  /** Timestamp of the last change of its fields. */
  readonly time: string | undefined
  /** Uses the internal field names (those of events.k8s.io/v1). Never empty. */
  readonly fields: FieldSet
}

/** Keyed by `ownerId`. */
export type Owners = ReadonlyMap<string, Owner>

export const NO_OWNERS: Owners = new Map()

/** Owns the existing fields of an event when it is first applied. */
const BEFORE_FIRST_APPLY = 'before-first-apply'
/** Replaces the oldest managers of updates when there are too many. */
const ANCIENT_CHANGES = 'ancient-changes'
const UPDATERS_MAX = 10
/** More than a few managers of one event are a mistake. */
const OWNERS_MAX = 128
/** Limits the fields of all owners together: every write walks them, blocking the event loop. */
const FIELDS_MAX = 2000
const MANAGER_BYTES_MAX = 128
const TEXT_LENGTH_MAX = 256

/** Fields without owners: the server sets them, or they identify the object. */
const UNOWNABLE: FieldSet =
  fieldSetOfV1({
    'f:apiVersion': {},
    'f:kind': {},
    'f:metadata': {
      '.': {},
      'f:name': {},
      'f:namespace': {},
      'f:creationTimestamp': {},
      'f:selfLink': {},
      'f:uid': {},
      'f:generation': {},
      'f:managedFields': {},
      'f:resourceVersion': {},
    },
  }) ?? NO_FIELDS

/** The fields that can have an owner. */
export function ownable(fields: FieldSet): FieldSet {
  return difference(fields, UNOWNABLE)
}

/** The identity of an entry: the API version counts only for updates. */
export function ownerId(owner: Omit<Owner, 'time' | 'fields'>): string {
  const { manager, operation, apiVersion, subresource } = owner
  return JSON.stringify([manager, operation, operation === 'Update' ? apiVersion : '', subresource])
}

/** Undefined when an entry is invalid, so that the owners are unknown. */
export function readOwners(entries: readonly ManagedFieldsEntry[]): Owners | undefined {
  if (entries.length > OWNERS_MAX) return undefined
  const owners = new Map<string, Owner>()
  for (const entry of entries) {
    const owner = readOwner(entry)
    if (owner === undefined) return undefined
    if (owner.fields.size > 0) owners.set(ownerId(owner), owner)
  }
  return areTooMany(owners) ? undefined : owners
}

/** The API versions in which events are served; owners of other versions are dropped. */
export type ServedVersions = ReadonlySet<string>

/** Drops owners of other versions, whose field names are unknown. */
export function servedOnly(owners: Owners, served: ServedVersions): Owners {
  const isServed = ([, { apiVersion }]: readonly [string, Owner]): boolean => served.has(apiVersion)
  return [...owners].every(isServed) ? owners : new Map([...owners].filter(isServed))
}

function fieldCount(owners: Owners): number {
  return [...owners.values()].reduce((sum, { fields }) => sum + sizeOf(fields), 0)
}

function readOwner(entry: ManagedFieldsEntry): Owner | undefined {
  const { manager = '', operation, apiVersion = '', subresource = '', time } = entry
  if (operation !== 'Apply' && operation !== 'Update') return undefined
  if (apiVersion === '' || entry.fieldsType !== 'FieldsV1') return undefined
  const isShort = Buffer.byteLength(manager) <= MANAGER_BYTES_MAX
  if (!isShort || apiVersion.length > TEXT_LENGTH_MAX || subresource.length > TEXT_LENGTH_MAX) {
    return undefined
  }
  const shown = fieldSetOfV1(entry.fieldsV1)
  if (shown === undefined) return undefined
  const fields = isCore(apiVersion) ? renamedTop(shown, fromCoreName) : shown
  return { manager, operation, apiVersion, subresource, time, fields }
}

export function areTooMany(owners: Owners): boolean {
  return owners.size > OWNERS_MAX || fieldCount(owners) > FIELDS_MAX
}

/** The error for an apply that exceeds the limits. */
export function tooManyOwners(): StatusError {
  const limit = `${OWNERS_MAX} managers with ${FIELDS_MAX} fields together`
  return entityTooLarge(`limit is ${limit}`, undefined)
}

/** The managedFields of these owners: appliers first, then by time. */
export function printOwners(owners: Owners): readonly ManagedFieldsEntry[] {
  return [...owners.values()].sort(compareOwners).map((owner) => ({
    ...(owner.manager === '' ? {} : { manager: owner.manager }),
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(owner.time === undefined ? {} : { time: owner.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsV1Of(shownFields(owner, owner.fields)),
    ...(owner.subresource === '' ? {} : { subresource: owner.subresource }),
  }))
}

/** The fields, with the names of the owner's API version. */
export function shownFields({ apiVersion }: Owner, fields: FieldSet): FieldSet {
  return isCore(apiVersion) ? renamedTop(fields, toCoreName) : fields
}

function isCore(apiVersion: string): boolean {
  return apiVersion === 'v1'
}

function compareOwners(a: Owner, b: Owner): number {
  return (
    compareTexts(a.operation, b.operation) ||
    compareTexts(a.time ?? '', b.time ?? '') ||
    compareTexts(a.manager, b.manager) ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource, b.subresource)
  )
}

/** The owners after changes: all except `except` lose the changed fields. */
export function afterLosses(owners: Owners, { set, removed }: Changes, except?: string): Owners {
  const left = new Map<string, Owner>()
  for (const [id, owner] of owners) {
    const fields = id === except ? owner.fields : difference(difference(owner.fields, set), removed)
    if (fields.size > 0) left.set(id, fields === owner.fields ? owner : { ...owner, fields })
  }
  return left
}

/** The manager, version and time of a write. */
export interface Writing {
  readonly manager: string
  readonly apiVersion: string
  readonly at: string
}

/** The owners after an update, which is a write other than an apply. */
export function afterUpdate(owners: Owners, changes: Changes, writing: Writing): Owners {
  const left = afterLosses(owners, changes)
  const gained = ownable(changes.set)
  if (gained.size === 0) return left
  const { manager, apiVersion, at } = writing
  const identity = { manager, operation: 'Update', apiVersion, subresource: '' } as const
  const id = ownerId(identity)
  const fields = union(left.get(id)?.fields ?? NO_FIELDS, gained)
  return withOldestMerged(new Map(left).set(id, { ...identity, time: at, fields }))
}

/** One owner for all fields of an event; `changes` is its difference from an empty event. */
export function beforeFirstApply(changes: Changes, writing: Omit<Writing, 'manager'>): Owners {
  return afterUpdate(NO_OWNERS, changes, { ...writing, manager: BEFORE_FIRST_APPLY })
}

/** Merges the oldest updaters beyond the limit into one owner per API version. */
function withOldestMerged(owners: Owners): Owners {
  const updaters = [...owners.values()].filter(({ operation }) => operation === 'Update')
  let tooMany = updaters.length - UPDATERS_MAX
  if (tooMany <= 0) return owners
  const left = new Map(owners)
  const oldest = new Map<string, Owner>()
  for (const owner of updaters.sort(compareOwners)) {
    if (tooMany <= 0) break
    const older = oldest.get(owner.apiVersion)
    oldest.set(owner.apiVersion, older === undefined ? owner : mergeUpdaters(left, older, owner))
    if (older !== undefined) tooMany--
  }
  return left
}

function mergeUpdaters(owners: Map<string, Owner>, older: Owner, newer: Owner): Owner {
  owners.delete(ownerId(older))
  owners.delete(ownerId(newer))
  const identity = { ...newer, manager: ANCIENT_CHANGES, subresource: '' }
  const id = ownerId(identity)
  const known = owners.get(id)?.fields ?? NO_FIELDS
  const ancient = { ...identity, fields: union(known, union(older.fields, newer.fields)) }
  owners.set(id, ancient)
  return ancient
}

export function withManagedFields(event: Event, entries: readonly ManagedFieldsEntry[]): Event {
  const { managedFields: _, ...metadata } = event.metadata
  const isManaged = entries.length > 0
  return { ...event, metadata: isManaged ? { ...metadata, managedFields: entries } : metadata }
}

/** Whether entries are equal except for their times. */
export function isSameButForTimes(
  a: readonly ManagedFieldsEntry[],
  b: readonly ManagedFieldsEntry[],
): boolean {
  return a.length === b.length && isDeepStrictEqual(timeless(a), timeless(b))
}

/** Keyed by identity, since the order of entries depends on their times. */
function timeless(entries: readonly ManagedFieldsEntry[]): ReadonlyMap<string, ManagedFieldsEntry> {
  return new Map(
    entries.map(({ time: _, ...entry }) => {
      const { manager, operation, apiVersion, subresource } = entry
      return [JSON.stringify([manager, operation, apiVersion, subresource]), entry]
    }),
  )
}
