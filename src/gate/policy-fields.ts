/**
 * Reads fields of policy objects in the format of Kubernetes, where a null or missing field is
 * empty. Errors name the path of the wrong field.
 */
import type { Labels } from '../api/selectors/compact-labels.ts'
import { labelValueProblems, qualifiedNameProblems } from '../api/validation/names.ts'
import { fieldOf, mistake, shown } from '../lib/files/config-fields.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'

export function requiredText(tree: JsonObject, name: string, at: string): string {
  const text = textOf(tree, name, at)
  if (text === '') throw mistake(fieldOf(at, name), 'is missing')
  return text
}

export function textOf(tree: JsonObject, name: string, at: string): string {
  return checkText(memberOf(tree, name) ?? '', fieldOf(at, name))
}

export function textsOf(tree: JsonObject, name: string, at: string): readonly string[] {
  return listOf(tree, name, at).map((value, index) =>
    checkText(value, `${fieldOf(at, name)}[${index}]`),
  )
}

export function listOf(tree: JsonObject, name: string, at: string): readonly Json[] {
  const value = memberOf(tree, name) ?? []
  if (!Array.isArray(value)) throw mistake(fieldOf(at, name), 'must be a list')
  return value
}

export function labelsOf(tree: JsonObject, name: string, at: string): Labels {
  const field = fieldOf(at, name)
  const labels = memberOf(tree, name) ?? {}
  if (!isObject(labels)) throw mistake(field, 'must be a mapping (key: value)')
  for (const [key, value] of Object.entries(labels)) {
    checkLabel(key, [checkText(value, fieldOf(field, key))], field)
  }
  return labels as Labels
}

export function checkLabel(key: string, values: readonly string[], at: string): void {
  const [problem] = [...qualifiedNameProblems(key), ...values.flatMap(labelValueProblems)]
  if (problem !== undefined) throw mistake(fieldOf(at, key), problem)
}

function checkText(value: Json, field: string): string {
  if (typeof value === 'string') return value
  throw mistake(field, `${shown(value)} is not a string: put it in quotes`)
}
