import { kindNameOf } from '../../api/kind-words.ts'
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import { isMatch, overlap, patternsText } from '../../api/selectors/value-pattern.ts'
import { badRequest } from '../../api/status.ts'
import { EVENT_TYPES } from '../../api/validation/event-validation.ts'
import { workloadByName } from '../../incidents/workload.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { Requires } from '../../storage/requires.ts'
import { hasSeveralValues } from './merged-fields.ts'
import { isTextTerm } from './text-test.ts'

/** Reasons why a selector can hardly match: an empty list would look as if nothing had happened. */
export function selectorWarnings(
  fields: readonly FieldRequirement[],
  { sinceMs, untilMs }: Pick<Requires, 'sinceMs' | 'untilMs'> = {},
): readonly string[] {
  const warnings = [
    ...fields.flatMap(quoteWarnings),
    ...fields.flatMap(typeWarnings),
    ...fields.flatMap(kindWarnings),
    ...fields.flatMap(workloadWarnings),
  ]
  const contradiction = contradictionIn(fields)
  if (contradiction !== undefined) warnings.push(contradiction)
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs >= untilMs) {
    warnings.push(
      'since is not before until: durations count back from now, so since is the longer one',
    )
  }
  return warnings
}

/**
 * Throws a 400 when two terms contradict each other and the field is not one of Kubernetes, which
 * would respond with an empty list.
 */
export function checkContradictions(fields: readonly FieldRequirement[]): void {
  const found = contradictionIn(fields.filter(({ field }) => isOwnField(field)))
  if (found !== undefined) throw badRequest(found)
}

/** A shell passes on the quotes within a selector that is quoted as a whole. */
function quoteWarnings({ label, operator, patterns }: FieldRequirement): readonly string[] {
  return patterns
    .filter(({ text }) => /^(["']).*\1$/.test(text))
    .map(({ text }) => `${label}${operator}${truncate(text)}: leave out the quotes`)
}

/** Pods belong to the Deployment or CronJob, not to what is between them. */
function workloadWarnings({ field, operator, patterns }: FieldRequirement): readonly string[] {
  if (field !== 'workload' || operator !== '=') return []
  return patterns.flatMap(({ text, isPrefix }) => {
    const [word = '', name = ''] = text.split('/')
    const kind = kindNameOf(word) ?? word
    const above = workloadByName({ kind, name })
    if (isPrefix || kind === 'Pod' || above.rule !== 'name') return []
    const wanted = truncate(`${above.kind}/${above.name}`)
    return [`workload=${truncate(text)}: its pods belong to ${wanted}: write workload=${wanted}`]
  })
}

function typeWarnings({ field, label, operator, patterns }: FieldRequirement): readonly string[] {
  if (field !== 'type') return []
  return patterns
    .filter((pattern) => !EVENT_TYPES.some((known) => isMatch(pattern, known)))
    .map(
      (pattern) =>
        `${label}${operator}${patternsText([pattern])}: the types of events are ${EVENT_TYPES.join(' and ')}`,
    )
}

function kindWarnings({ field, label, operator, patterns }: FieldRequirement): readonly string[] {
  if (field !== 'regarding.kind' && field !== 'related.kind') return []
  return patterns.flatMap(({ text, isPrefix }) => {
    const known = isPrefix ? undefined : kindNameOf(text)
    if (known === text || (known === undefined && !/^[a-z]/.test(text))) return []
    const term = `${label}${operator}${patternsText([{ text, isPrefix }])}`
    const hint = known === undefined ? '' : `: write ${label}${operator}${known}`
    return [`${term}: kinds begin with a capital letter, and are compared with case${hint}`]
  })
}

/** Two terms that require different values of a field. */
function contradictionIn(fields: readonly FieldRequirement[]): string | undefined {
  const required = fields.filter((one) => one.operator === '=' && hasOneValue(one))
  for (const [index, one] of required.entries()) {
    const other = required
      .slice(index + 1)
      .find(
        ({ field, patterns }) =>
          field === one.field &&
          !patterns.some((pattern) => one.patterns.some((each) => overlap(pattern, each))),
      )
    if (other === undefined) continue
    const first = truncate(patternsText(one.patterns))
    const second = truncate(patternsText(other.patterns))
    const both = `${one.label}=${first},${other.label}=${second}`
    return `${both}: no event has both; for either write ${one.label}=${first}|${second}`
  }
  return undefined
}

function hasOneValue(requirement: FieldRequirement): boolean {
  const { field } = requirement
  if (field === 'since' || field === 'until' || isTextTerm(requirement)) return false
  return !hasSeveralValues(field)
}

/** Whether only this server can select by the field. */
function isOwnField(field: SelectableField): boolean {
  return !/^(?:metadata\..*|reason|type|reportingController|source|regarding\..*)$/.test(field)
}
