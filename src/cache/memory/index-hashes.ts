/**
 * 32-bit hashes of the indexed fields of an event. Equal values have equal hashes; collisions are
 * harmless, since a lookup by hash checks the event itself afterwards.
 */
import type { EventFields, EventSelector } from '../../storage/storage.ts'

type Requires = Omit<NonNullable<EventSelector['requires']>, 'name'>

/**
 * In the order of `hashesOf`. A field with a tree is an index. The type has no tree: it has two
 * values, and an index that leads to half of all events is worth less than the ten megabytes it
 * takes. Its hash still saves a scan from reading the events that do not match.
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

/** Every match has this hash in this field. */
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

/** FNV-1a over the code units, with a final mix: many names differ in their last letters only. */
function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
