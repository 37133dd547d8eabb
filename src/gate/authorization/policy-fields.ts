/** Reads fields of policy objects. Throws a PolicyMistake with the path of a wrong field. */
import type { Labels } from '../../api/selectors/compact-labels.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../api/validation/names.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'

/** How much of a wrong value or name an error quotes. */
const SHOWN_MAX = 80

/** A wrong field and the problem. */
export class PolicyMistake extends Error {
  override readonly name = 'PolicyMistake'

  constructor(field: string, why: string) {
    super(field === '' ? why : `${field}: ${why}`)
  }
}

/** Unknown fields are mistakes: a misspelt one could make a rule allow more than intended. */
export function onlyMembers(tree: JsonObject, at: string, known: readonly string[]): void {
  const unknown = Object.keys(tree).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw new PolicyMistake(`${at}${unknown.slice(0, SHOWN_MAX)}`, 'unknown field')
  }
}

export function requiredText(tree: JsonObject, name: string, at: string): string {
  const text = textOf(tree, name, at)
  if (text === '') throw new PolicyMistake(`${at}${name}`, 'is missing')
  return text
}

/** Empty when it is missing. */
export function textOf(tree: JsonObject, name: string, at: string): string {
  const value = memberOf(tree, name) ?? ''
  if (typeof value !== 'string') {
    throw new PolicyMistake(
      `${at}${name}`,
      `${quoteValue(value)} is not a string: put it in quotes`,
    )
  }
  return value
}

export function textsOf(tree: JsonObject, name: string, at: string): readonly string[] {
  return listOf(tree, name, at).map((value, index) => {
    if (typeof value === 'string') return value
    const why = `${quoteValue(value)} is not a string: put it in quotes`
    throw new PolicyMistake(`${at}${name}[${index}]`, why)
  })
}

/** Empty when it is missing. */
export function listOf(tree: JsonObject, name: string, at: string): readonly Json[] {
  const value = memberOf(tree, name) ?? []
  if (!Array.isArray(value)) throw new PolicyMistake(`${at}${name}`, 'must be a list')
  return value
}

export function labelsOf(tree: JsonObject, name: string, at: string): Labels {
  const labels = memberOf(tree, name) ?? {}
  if (!isObject(labels)) throw new PolicyMistake(`${at}${name}`, 'not an object')
  for (const [key, value] of Object.entries(labels)) {
    if (typeof value !== 'string') {
      throw new PolicyMistake(
        `${at}${name}.${key}`,
        `${quoteValue(value)} is not a string: put it in quotes`,
      )
    }
    checkLabel(key, [value], `${at}${name}.`)
  }
  return labels as Labels
}

export function quoteValue(value: Json): string {
  return JSON.stringify(value).slice(0, SHOWN_MAX)
}

export function checkLabel(key: string, values: readonly string[], at: string): void {
  const [problem] = [...qualifiedNameProblems(key), ...values.flatMap(labelValueProblems)]
  if (problem !== undefined) throw new PolicyMistake(`${at}${key.slice(0, SHOWN_MAX)}`, problem)
}
