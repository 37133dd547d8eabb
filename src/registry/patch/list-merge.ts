import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { PatchError } from './patch-error.ts'

/** The lists to merge for one member of a strategic merge patch. */
export interface Lists {
  readonly current: readonly Json[]
  readonly patch: readonly Json[]
  /** `$setElementOrder`. Default: the order of the patch. */
  readonly order: readonly Json[] | undefined
}

type Key = string | number | boolean

interface Entry {
  readonly value: Json
  /** Position in the current list; undefined for a new entry. */
  readonly place: number | undefined
}

/** Merges lists of scalars; each value occurs once in the result. */
export function mergeSet({ current, patch, order }: Lists): Json[] {
  const changed = new Set(patch.map(plainKey))
  const orderKeys = checkedOrder(changed, order?.map(plainKey))

  const places = new Map<Json, number>()
  const others: Entry[] = []
  let place = 0
  for (const value of new Set(current)) {
    if (isKey(value) && orderKeys.has(value)) places.set(value, place)
    else others.push({ value, place })
    place += 1
  }
  const named: Entry[] = []
  for (const key of orderKeys) {
    const at = places.get(key)
    if (at !== undefined || changed.has(key)) named.push({ value: key, place: at })
  }
  return interleaved(named, others)
}

/** Removes values from a list of scalars. */
export function withoutEntries(list: readonly Json[], unwanted: readonly Json[]): Json[] {
  const gone = new Set(unwanted)
  return list.filter((value) => !gone.has(value))
}

/** Merges lists of objects with a key member and follows their `$patch` directives. */
export function mergeKeyedList(
  { current, patch, order }: Lists,
  options: {
    readonly key: string
    readonly merge: (current: JsonObject, patch: JsonObject) => JsonObject
  },
): Json[] {
  const { changes, deleted, replacesAll } = readKeyedPatch(patch, options.key)
  const orderKeys = checkedOrder(
    new Set(changes.map(({ key }) => key)),
    order?.map((entry) => keyedEntry(entry, options.key).key),
  )

  const named = new Map<Key, Entry>()
  const others: Entry[] = []
  for (const [place, value] of replacesAll ? [] : current.entries()) {
    const key = currentKey(value, options.key)
    if (deleted.has(key)) continue
    if (orderKeys.has(key) && !named.has(key)) named.set(key, { value, place })
    else others.push({ value, place })
  }
  for (const { key, value } of changes) {
    const entry = named.get(key)
    const base = isObject(entry?.value) ? entry.value : {}
    named.set(key, { value: options.merge(base, value), place: entry?.place })
  }
  const inOrder = Array.from(orderKeys, (key) => named.get(key)).filter(
    (entry) => entry !== undefined,
  )
  return interleaved(inOrder, others)
}

interface KeyedPatch {
  readonly changes: readonly { readonly key: Key; readonly value: JsonObject }[]
  readonly deleted: ReadonlySet<Key>
  /** Whether the patch replaces the whole current list. */
  readonly replacesAll: boolean
}

function readKeyedPatch(patch: readonly Json[], member: string): KeyedPatch {
  const changes: { key: Key; value: JsonObject }[] = []
  const deleted = new Set<Key>()
  let replacesAll = false
  for (const element of patch) {
    const directive = isObject(element) ? memberOf(element, '$patch') : undefined
    // An entry with this directive applies to the list, and is not an entry itself.
    if (directive === 'replace') replacesAll = true
    else if (directive === 'delete') deleted.add(keyedEntry(element, member).key)
    else changes.push(keyedEntry(element, member))
  }
  return { changes, deleted, replacesAll }
}

function keyedEntry(element: Json, member: string): { key: Key; value: JsonObject } {
  if (Array.isArray(element)) throw listOfLists()
  const key = isObject(element) ? memberOf(element, member) : undefined
  if (isObject(element) && isKey(key)) return { key, value: element }
  throw new PatchError('malformed', `entries of this list must be objects with a ${member}`)
}

function currentKey(value: Json, member: string): Key {
  const key = isObject(value) ? memberOf(value, member) : undefined
  if (isKey(key)) return key
  throw new PatchError('failed', `the current list has an entry without a ${member}`)
}

function plainKey(value: Json): Key {
  if (isKey(value)) return value
  if (Array.isArray(value)) throw listOfLists()
  throw new PatchError('malformed', 'entries of this list must be plain values')
}

function isKey(value: Json | undefined): value is Key {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function listOfLists(): PatchError {
  return new PatchError('failed', 'lists of lists are not supported')
}

/** The order to follow; a given order must contain the entries of the patch, in the same order. */
function checkedOrder(patch: ReadonlySet<Key>, given: readonly Key[] = []): ReadonlySet<Key> {
  if (given.length === 0) return patch
  const expected = [...patch]
  let next = 0
  for (const key of given) if (key === expected[next]) next += 1
  if (next === expected.length) return new Set(given)
  throw new PatchError('malformed', '$setElementOrder contradicts the order of the list')
}

/**
 * Interleaves two lists; both keep their order. Each of the `others` comes before the first of the
 * `named` that it preceded in the current list. New entries have no position there.
 */
function interleaved(named: readonly Entry[], others: readonly Entry[]): Json[] {
  const result: Json[] = []
  let next = 0
  for (const entry of named) {
    for (let other = others[next]; precedes(other, entry); other = others[next]) {
      result.push(other.value)
      next += 1
    }
    result.push(entry.value)
  }
  for (; next < others.length; next += 1) result.push(others[next]?.value ?? null)
  return result
}

function precedes(other: Entry | undefined, entry: Entry): other is Entry {
  return other?.place !== undefined && entry.place !== undefined && other.place < entry.place
}
