/**
 * Reads the fields of a configuration file that was parsed as YAML or JSON. Errors name the path of
 * the field, such as `clusters[2].mirror.deletes`.
 */
import { isObject, type Json, type JsonObject, memberOf } from '../json.ts'
import { yamlDocuments } from '../text/yaml-documents.ts'

/** How much of an invalid value an error quotes. */
const SHOWN_MAX = 80

/** Must be a single document of this kind and one of these versions. */
export function configurationIn(
  text: string,
  {
    apiVersion,
    kind,
  }: { readonly apiVersion: string | readonly [string, ...string[]]; readonly kind: string },
): JsonObject {
  const versions: readonly Json[] = typeof apiVersion === 'string' ? [apiVersion] : apiVersion
  const [document, second] = [...yamlDocuments(text)]
  if (document === undefined) throw new Error('the file is empty')
  if (second !== undefined) throw new Error('the file has more than one document')
  const { value } = document
  if (
    !isObject(value) ||
    !versions.includes(memberOf(value, 'apiVersion') ?? null) ||
    memberOf(value, 'kind') !== kind
  ) {
    throw new Error(`set apiVersion: ${versions[0]} and kind: ${kind}`)
  }
  return value
}

/** An error whose message begins with where it happened: a path or a field. */
export function errorIn(where: string, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Error(`${where}: ${why}`, { cause })
}

export function mistake(field: string, why: string): Error {
  return new Error(field === '' ? why : `${field}: ${why}`)
}

/** Unknown fields are errors: a misspelt one would otherwise be a setting without effect. */
export function objectOf(value: Json, at: string, names: readonly string[]): JsonObject {
  if (!isObject(value)) throw mistake(at, 'must be a mapping (key: value)')
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    const field = fieldOf(at, unknown.slice(0, SHOWN_MAX))
    throw mistake(field, `unknown field; known fields are ${names.join(', ')}`)
  }
  return value
}

export function listOf(tree: JsonObject, name: string, at: string, max: number): readonly Json[] {
  const value = memberOf(tree, name)
  if (!Array.isArray(value)) throw mistake(fieldOf(at, name), 'must be a list')
  if (value.length > max) throw mistake(fieldOf(at, name), `has more than ${max} entries`)
  return value
}

/** Undefined when it is missing. Rejects an empty string. */
export function textOf(tree: JsonObject, name: string, at: string): string | undefined {
  const value = memberOf(tree, name)
  return value === undefined ? undefined : checkedText(value, fieldOf(at, name))
}

/** Rejects an empty string, too. */
export function checkedText(value: Json, field: string): string {
  if (value === '') throw mistake(field, 'must not be empty')
  if (typeof value === 'string') return value
  if (typeof value === 'object') throw mistake(field, 'must be a string')
  throw mistake(field, `${shown(value)} is not a string: put it in quotes`)
}

/** The first of `values` is the default. */
export function oneOf<T extends string>(
  tree: JsonObject,
  name: string,
  at: string,
  values: readonly [T, ...T[]],
): T {
  const value = memberOf(tree, name) ?? values[0]
  const found = values.find((one) => one === value)
  if (found !== undefined) return found
  throw mistake(fieldOf(at, name), `${shown(value)} is not one of ${values.join(', ')}`)
}

export function fieldOf(at: string, name: string): string {
  return at === '' ? name : `${at}.${name}`
}

export function shown(value: Json): string {
  return JSON.stringify(value).slice(0, SHOWN_MAX)
}
