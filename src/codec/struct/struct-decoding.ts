import { type Field, type FieldType, StructType } from '../../api/schema.ts'
import { canonicalTime, ZERO_TIME } from '../../api/time.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { ParsedJson } from '../json/json-text.ts'

/** The maximum number of reported problems, since a body can have any number of them. */
export const PROBLEMS_MAX = 100

/** Thrown for a value of the wrong type, with the message of Go's encoding/json. */
export class TypeMismatch extends Error {
  override readonly name = 'TypeMismatch'
}

/**
 * Decodes trees by the schema. Omits empty members: null, an empty string, a zero value unless the
 * schema keeps it, an empty map or list. Collects unknown and repeated names in document order.
 * Throws a TypeMismatch or a TimeSyntaxError.
 */
export class StructDecoder {
  /** For example `unknown field "metadata.foo"` or `duplicate field "reason"`. */
  readonly problems: string[] = []
  readonly #duplicates: ParsedJson['duplicates'] | undefined
  /** Names that are accepted at the top level although they are not fields. */
  readonly #topNames: ReadonlySet<string>

  constructor(topNames: ReadonlySet<string>, duplicates: ParsedJson['duplicates'] | undefined) {
    this.#topNames = topNames
    this.#duplicates = duplicates?.size === 0 ? undefined : duplicates
  }

  /**
   * The result shares maps, lists and raw trees with `source`, which must not be modified
   * afterwards.
   */
  struct(type: StructType, source: JsonObject, path: string): JsonObject {
    const repeated = this.#duplicates?.get(source)
    const result: JsonObject = {}
    for (const name of Object.keys(source)) {
      const field = type.field(name)
      if (field === undefined && !(path === '' && this.#topNames.has(name))) {
        this.#problem('unknown', path, name)
        continue
      }
      if (repeated?.has(name)) this.#problem('duplicate', path, name)
      if (field === undefined) continue
      const value = this.#value({ type, field, path }, source[name])
      if (value !== undefined) result[field.name] = value
    }
    return result
  }

  #value(place: Place, value: Json | undefined): Json | undefined {
    if (value === null || value === undefined) return undefined
    const { type } = place.field
    switch (type) {
      case 'string':
        return typeof value === 'string' ? unlessZero(place.field, value) : mismatch(place, value)
      case 'time':
      case 'microTime':
        if (typeof value !== 'string') return mismatch(place, value)
        return canonicalTime(value, type) ?? (place.field.keepsZero ? ZERO_TIME : undefined)
      case 'int32':
      case 'int64':
        return unlessZero(place.field, integer(place, value, type))
      case 'bool':
        return typeof value === 'boolean' ? unlessZero(place.field, value) : mismatch(place, value)
      case 'raw':
        return value
      case 'stringMap':
        return this.#stringMap(place, value)
      default:
        return 'struct' in type
          ? this.#member(place, type.struct, value)
          : this.#list(place, type.listOf, value)
    }
  }

  #member(place: Place, type: StructType, value: Json): JsonObject | undefined {
    if (!isObject(value)) return mismatch(place, value)
    const struct = this.struct(type, value, joined(place.path, place.field.name))
    return place.field.whenUnset === '{}' && isEmpty(struct) ? undefined : struct
  }

  #stringMap(place: Place, value: Json): JsonObject | undefined {
    if (!isObject(value)) return mismatch(place, value)
    for (const name of this.#duplicates?.get(value) ?? []) {
      this.#problem('duplicate', joined(place.path, place.field.name), name)
    }
    const names = Object.keys(value)
    for (const name of names) {
      const entry = value[name]
      if (entry === null) return this.#stringMap(place, withoutNulls(value))
      if (typeof entry !== 'string') return mismatch(place, entry, 'string')
    }
    return names.length === 0 ? undefined : value
  }

  #list(place: Place, entryType: 'string' | StructType, value: Json): Json[] | undefined {
    if (!Array.isArray(value)) return mismatch(place, value)
    if (value.length === 0) return place.field.keepsZero ? [] : undefined
    const path = joined(place.path, place.field.name)
    return value.map((entry, index) => {
      if (!(entryType instanceof StructType)) {
        if (typeof entry === 'string') return entry
        return entry === null ? '' : mismatch(place, entry, 'string')
      }
      if (entry !== null && !isObject(entry)) {
        return mismatch(place, entry, goTypeOf({ struct: entryType }))
      }
      return this.struct(entryType, entry ?? {}, `${path}[${index}]`)
    })
  }

  #problem(what: 'unknown' | 'duplicate', path: string, name: string): void {
    if (this.problems.length >= PROBLEMS_MAX) return
    this.problems.push(`${what} field ${goQuote(joined(path, truncate(name)))}`)
  }
}

interface Place {
  readonly type: StructType
  /** The path of the structure, such as `metadata.ownerReferences[0]`; empty for the root. */
  readonly path: string
  readonly field: Field
}

/** Go's name for the type of a JSON value. */
export function jsonKind(value: Json | undefined): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function mismatch(place: Place, value: Json | undefined, goType?: string): never {
  const path = joined(place.path, place.field.name).replaceAll(/\[\d+\]/g, '')
  const wanted = goType ?? goTypeOf(place.field.type)
  const shown = wanted.startsWith('int') && typeof value === 'number' ? ` ${value}` : ''
  throw new TypeMismatch(
    `json: cannot unmarshal ${jsonKind(value)}${shown} into Go struct field ${place.type.name}.${path} of type ${wanted}`,
  )
}

function goTypeOf(type: FieldType): string {
  if (type === 'stringMap') return 'map[string]string'
  if (type === 'time' || type === 'microTime') return 'string'
  if (typeof type === 'string') return type
  if ('struct' in type) return `v1.${type.struct.name}`
  return type.listOf instanceof StructType ? `[]v1.${type.listOf.name}` : '[]string'
}

/** Refuses integers beyond the safe range, since they would be encoded with another value. */
function integer(place: Place, value: Json, type: 'int32' | 'int64'): number {
  if (typeof value !== 'number') return mismatch(place, value)
  const fits = type === 'int32' ? (value | 0) === value : Number.isSafeInteger(value)
  return fits ? value : mismatch(place, value)
}

function unlessZero<T extends number | boolean | string>(field: Field, value: T): T | undefined {
  return value || field.keepsZero ? value : undefined
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false
  return true
}

function withoutNulls(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, value ?? '']))
}

function joined(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
