import fc from 'fast-check'
import { type Field, type FieldType, type ScalarKind, StructType } from '../../api/schema.ts'
import type { Json, JsonObject } from '../../lib/json.ts'

/** Structures as the decoders return them: empty values are absent. */
export function structsOf(type: StructType): fc.Arbitrary<JsonObject> {
  const members = Object.fromEntries(type.fields.map((field) => [field.name, valuesOf(field)]))
  return fc.record(members, { requiredKeys: [] }).map((made) => without(type, made as JsonObject))
}

function valuesOf({ type, keepsZero }: Field): fc.Arbitrary<Json> {
  if (type === 'stringMap') return maps
  if (typeof type === 'string') return scalarsOf(type, keepsZero === true)
  return 'struct' in type ? structsOf(type.struct) : listsOf(type)
}

function listsOf(type: Extract<FieldType, { readonly listOf: unknown }>): fc.Arbitrary<Json> {
  const { listOf } = type
  const entries = listOf instanceof StructType ? structsOf(listOf) : fc.string()
  return fc.array(entries as fc.Arbitrary<Json>, { minLength: 1, maxLength: 3 })
}

const texts = fc.string({ minLength: 1, unit: 'grapheme' })
const maps = fc
  .dictionary(fc.string(), fc.string(), { minKeys: 1, maxKeys: 4, noNullPrototype: true })
  .map((map) => map as Json)

function scalarsOf(kind: ScalarKind, keepsZero: boolean): fc.Arbitrary<Json> {
  switch (kind) {
    case 'string':
      return texts
    case 'bool':
      return keepsZero ? fc.boolean() : fc.constant(true)
    case 'int32':
      return fc.integer().filter((value) => keepsZero || value !== 0)
    case 'int64':
      return fc.maxSafeInteger().filter((value) => keepsZero || value !== 0)
    case 'time':
      return instants.map((ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`)
    case 'microTime':
      return fc.tuple(instants, fc.nat(999)).map(([ms, micros]) => {
        const text = new Date(ms).toISOString().slice(0, 23)
        return `${text}${String(micros).padStart(3, '0')}Z`
      })
    case 'raw':
      return fc.constantFrom<Json>({ 'f:note': {} }, { 'f:metadata': { '.': {} } })
  }
}

const instants = fc.integer({
  min: Date.parse('0002-01-01T00:00:00Z'),
  max: Date.parse('9999-12-31T23:59:59Z'),
})

/** An empty structure is the same as an absent one where the schema always encodes the field. */
function without(type: StructType, made: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(made).filter(([name, value]) => {
      const isEmpty = JSON.stringify(value) === '{}'
      return !(isEmpty && type.field(name)?.whenUnset === '{}')
    }),
  )
}
