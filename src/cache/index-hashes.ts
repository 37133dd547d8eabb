/**
 * What is looked up by: a few fields of an event, each as a number of 32 bits. Equal values have
 * equal numbers; that unequal ones mostly have unequal ones is all that is asked of them, since
 * whoever finds an event by its number looks at the event itself.
 */
import type { EventFields, EventSelector } from '../storage/storage.ts'

type Requires = Omit<NonNullable<EventSelector['requires']>, 'name'>

/**
 * The order is that of the numbers in `hashesOf`. Those with a tree find their events at once. The
 * type does not get one: it has two values, and a tree that leads to half of all events is worth
 * less than the ten megabytes it takes; its number still spares a scan the reading of the others.
 */
export const hashedFields: readonly { readonly name: keyof Requires; readonly hasTree: boolean }[] =
  [
    { name: 'regardingUid', hasTree: true },
    { name: 'regarding', hasTree: true },
    { name: 'reason', hasTree: true },
    { name: 'reportingController', hasTree: true },
    { name: 'type', hasTree: false },
  ]

export type Hashes = readonly [number, number, number, number, number]

export function hashesOf(fields: EventFields): Hashes {
  const { regarding } = fields
  return [
    hash(regarding.uid),
    hashOfObject(regarding),
    hash(fields.reason),
    hash(fields.reportingController),
    hash(fields.type),
  ]
}

/** A field that every match has this number in. */
export interface Requirement {
  readonly field: number
  readonly hash: number
}

export function requirementsOf(selector: EventSelector | undefined): readonly Requirement[] {
  const requires = selector?.requires
  if (requires === undefined) return []
  const found: Requirement[] = []
  for (const [field, { name }] of hashedFields.entries()) {
    const value = requires[name]
    if (value === undefined) continue
    found.push({ field, hash: typeof value === 'string' ? hash(value) : hashOfObject(value) })
  }
  return found
}

function hashOfObject(object: {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}): number {
  return hash(object.name, hash(object.namespace, hash(object.kind)))
}

/** FNV-1a over the code units, stirred at the end: many names differ in their last letters only. */
function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
