import type { FieldType, StructType } from '../schema.ts'
import { isCanonicalTime } from '../time.ts'

/** Bounds the recursion; the same as for request bodies. */
const DEPTH_MAX = 200
const INT32_LIMIT = 2 ** 31

/**
 * Returns the path of the first value that the encoders cannot handle, such as `metadata.labels`, or
 * undefined. Accepts null and unknown members: a newer release of the server may have written them.
 */
export function findTypeMismatch(type: StructType, value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return ''
  const members = value as Readonly<Record<string, unknown>>
  for (const name in members) {
    const member = members[name]
    if (member === null) continue
    const field = type.field(name)
    const where = field === undefined ? tooDeep(member, 1) : fieldMismatch(field.type, member)
    if (where !== undefined) return where === '' ? name : `${name}.${where}`
  }
  return undefined
}

/** The empty path means the value itself. */
function fieldMismatch(type: FieldType, value: unknown): string | undefined {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? undefined : ''
    case 'time':
    case 'microTime':
      return typeof value === 'string' && isCanonicalTime(value, type) ? undefined : ''
    case 'int32':
    case 'int64':
      return isInteger(value, type) ? undefined : ''
    case 'bool':
      return typeof value === 'boolean' ? undefined : ''
    case 'stringMap':
      return mapMismatch(value)
    case 'raw':
      return tooDeep(value, 1)
    default:
      return 'struct' in type
        ? findTypeMismatch(type.struct, value)
        : listMismatch(type.listOf, value)
  }
}

function isInteger(value: unknown, type: 'int32' | 'int64'): boolean {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return false
  return type === 'int64' || (value >= -INT32_LIMIT && value < INT32_LIMIT)
}

function mapMismatch(value: unknown): string | undefined {
  if (typeof value !== 'object' || Array.isArray(value)) return ''
  const entries = value as Readonly<Record<string, unknown>>
  for (const name in entries) if (typeof entries[name] !== 'string') return ''
  return undefined
}

function listMismatch(entryType: 'string' | StructType, value: unknown): string | undefined {
  if (!Array.isArray(value)) return ''
  for (const entry of value) {
    if (entryType === 'string') {
      if (typeof entry !== 'string') return ''
    } else if (findTypeMismatch(entryType, entry) !== undefined) return ''
  }
  return undefined
}

function tooDeep(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > DEPTH_MAX) return ''
  for (const entry of Object.values(value)) {
    if (tooDeep(entry, depth + 1) !== undefined) return ''
  }
  return undefined
}
