import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import { isMatch, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import { isTextTerm } from './text-test.ts'

/**
 * Joins the requirements of a field to one for each operator: a watch retains them, and tests each
 * of them with each event. A requirement without patterns cannot be met.
 */
export function mergedFields(fields: readonly FieldRequirement[]): readonly FieldRequirement[] {
  if (fields.length < 2) return fields
  const merged = new Map<string, FieldRequirement>()
  for (const [index, requirement] of fields.entries()) {
    const key = isMergeable(requirement)
      ? `${requirement.field}${requirement.operator}`
      : String(index)
    const known = merged.get(key)
    const patterns =
      known === undefined ? requirement.patterns : joined(known, requirement.patterns)
    merged.set(key, { ...requirement, patterns })
  }
  return [...merged.values()]
}

/** Texts and bounds are joined elsewhere. */
function isMergeable(requirement: FieldRequirement): boolean {
  const { field, operator } = requirement
  if (field === 'since' || field === 'until' || isTextTerm(requirement)) return false
  return !hasSeveralValues(field) || operator === '!='
}

/** An event can mention two objects, and belong to a workload while it is about another. */
export function hasSeveralValues(field: SelectableField): boolean {
  return field === 'mentions' || field === 'workload'
}

function joined(
  { operator, patterns }: FieldRequirement,
  others: readonly ValuePattern[],
): readonly ValuePattern[] {
  if (operator === '!=') return [...patterns, ...others]
  return [
    ...patterns.filter((one) => others.some((other) => includes(other, one))),
    ...others.filter((other) =>
      patterns.some((one) => includes(one, other) && !includes(other, one)),
    ),
  ]
}

/** Whether everything that matches `other` also matches `one`. */
function includes(one: ValuePattern, other: ValuePattern): boolean {
  return isMatch(one, other.text) && (one.isPrefix || !other.isPrefix)
}
