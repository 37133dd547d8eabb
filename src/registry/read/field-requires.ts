/** The part of field requirements that an index can check. */
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import type { Requires, ValueField } from '../../storage/requires.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import { boundOf, mentionOf, requiredValue } from './field-tests.ts'
import { textsOf } from './text-test.ts'

/** Fields whose values an index compares exactly. */
const valueFields: ReadonlyMap<SelectableField, ValueField> = new Map([
  ['regarding.kind', 'kind'],
  ['reason', 'reason'],
  ['type', 'type'],
  ['reportingController', 'reportingController'],
  ['controller', 'controller'],
])

/** `isAlone`: there are no other requirements. */
export function requirementsOf(
  fields: readonly FieldRequirement[],
  nowMs: number,
  isAlone: boolean,
): Requires {
  const kind = requiredValue(fields, 'regarding.kind')
  const namespace = requiredValue(fields, 'regarding.namespace')
  const name = requiredValue(fields, 'regarding.name')
  const isWhole = kind !== undefined && namespace !== undefined && name !== undefined
  const mentions = requiredValue(fields, 'mentions')
  const texts = textsOf(fields)
  return {
    name: requiredValue(fields, 'metadata.name'),
    regardingUid: requiredValue(fields, 'regarding.uid'),
    regarding: isWhole ? { kind, namespace, name } : undefined,
    mentions: mentions === undefined ? undefined : mentionOf(mentions),
    kind,
    reason: requiredValue(fields, 'reason'),
    type: requiredValue(fields, 'type'),
    reportingController: requiredValue(fields, 'reportingController'),
    controller: requiredValue(fields, 'controller'),
    not: excludedValues(fields),
    ...windowOf(fields, nowMs),
    texts: texts.length === 0 ? undefined : texts,
    isAll: isAlone && isKnownToIndex(fields),
  }
}

/** One excluded value of each field. */
function excludedValues(fields: readonly FieldRequirement[]): Requires['not'] {
  const not: Partial<Record<ValueField, string>> = {}
  for (const { field, operator, value } of fields) {
    const known = valueFields.get(field)
    if (known !== undefined && operator === '!=') not[known] = value
  }
  return Object.keys(not).length === 0 ? undefined : not
}

/** The time that `since` and `until` leave. */
export function windowOf(fields: readonly FieldRequirement[], nowMs: number): TimeWindow {
  return { sinceMs: latest(fields, nowMs), untilMs: earliest(fields, nowMs) }
}

function latest(fields: readonly FieldRequirement[], nowMs: number): number | undefined {
  const bounds = fields.filter(({ field }) => field === 'since').map((one) => boundOf(one, nowMs))
  return bounds.length === 0 ? undefined : Math.max(...bounds)
}

function earliest(fields: readonly FieldRequirement[], nowMs: number): number | undefined {
  const bounds = fields.filter(({ field }) => field === 'until').map((one) => boundOf(one, nowMs))
  return bounds.length === 0 ? undefined : Math.min(...bounds)
}

/** Removes duplicates: the index gets each value at most once with each operator. */
function isKnownToIndex(fields: readonly FieldRequirement[]): boolean {
  const seen = new Set<string>()
  return fields.every(({ field, operator }) => {
    if (field === 'since' || field === 'until' || field === 'text') return true
    const key = `${field}${operator}`
    if (!valueFields.has(field) || seen.has(key)) return false
    seen.add(key)
    return true
  })
}
