/** The part of field requirements that an index can check. */
import { type FieldRequirement, requiredPatterns } from '../../api/selectors/field-selector.ts'
import { exactValues, PATTERNS_MAX, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import { shownMax } from '../../lib/text/shortened.ts'
import {
  isValueField,
  type Mention,
  type NamedObject,
  type Requires,
  type ValueRequirement,
} from '../../storage/requires.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import { boundOf, mentionOf, patternNumberOf, workloadPatternOf } from './field-tests.ts'
import { isPlainText, isTextTerm, textsOf } from './text-test.ts'

/** `isAlone`: there are no other requirements. */
export function requirementsOf(
  fields: readonly FieldRequirement[],
  nowMs: number,
  isAlone: boolean,
): Requires {
  const values = fields.filter(isOfIndex)
  const texts = textsOf(fields)
  const isAll = isAlone && fields.every((one) => isBound(one) || isTextTerm(one) || isOfIndex(one))
  const found: Requires = {
    names: requiredPatterns(fields, 'metadata.name'),
    namespaces: requiredPatterns(fields, 'metadata.namespace'),
    regardingUids: exact(requiredPatterns(fields, 'regarding.uid')),
    regarding: objectsOf(fields),
    mentions: mentionsOf(fields),
    workloads: workloadsOf(fields),
    nodes: exact(requiredPatterns(fields, 'node')),
    notePatterns: requiredPatterns(fields, 'pattern')?.map(patternNumberOf),
    values: values.length === 0 ? undefined : values,
    ...windowOf(fields, nowMs),
    texts: texts.length === 0 ? undefined : texts,
    isAll,
    fields,
    isOfFields: isAlone,
  }
  return isAll ? found : { ...found, fragments: fragmentsOf(fields, found) }
}

/** An index knows only the beginning of long values. */
function isOfIndex(
  requirement: FieldRequirement,
): requirement is FieldRequirement & ValueRequirement {
  const { field, patterns } = requirement
  return (
    isValueField(field) &&
    !patterns.some(({ text, isPrefix }) => isPrefix && text.length > shownMax)
  )
}

function exact(patterns: readonly ValuePattern[] | undefined): readonly string[] | undefined {
  return patterns && exactValues(patterns)
}

/** The regarded objects, when both kinds and names are required. */
function objectsOf(fields: readonly FieldRequirement[]): readonly NamedObject[] | undefined {
  const kinds = exact(requiredPatterns(fields, 'regarding.kind'))
  const names = exact(requiredPatterns(fields, 'regarding.name'))
  if (kinds === undefined || names === undefined) return undefined
  if (kinds.length * names.length > PATTERNS_MAX) return undefined
  return kinds.flatMap((kind) => names.map((name) => ({ kind, name })))
}

function mentionsOf(fields: readonly FieldRequirement[]): readonly Mention[] | undefined {
  const wanted = requiredPatterns(fields, 'mentions')?.map(mentionOf)
  if (wanted === undefined) return undefined
  const found: Mention[] = []
  for (const mention of wanted) {
    if (mention.uid !== undefined) found.push(mention)
    else if (mention.name.isPrefix) return undefined
    else found.push({ kind: mention.kind, name: mention.name.text })
  }
  return found
}

function workloadsOf(fields: readonly FieldRequirement[]): readonly NamedObject[] | undefined {
  const wanted = requiredPatterns(fields, 'workload')?.map(workloadPatternOf)
  if (wanted === undefined || wanted.some(({ name }) => name.isPrefix)) return undefined
  return wanted.map(({ kind, name }) => ({ kind, name: name.text }))
}

/** More texts take longer to look for than the event takes to decode. */
const fragmentsMax = 4

/** To look for what an index has found would take longer than it saves. */
function fragmentsOf(
  fields: readonly FieldRequirement[],
  { regardingUids, regarding, mentions }: Requires,
): Requires['fragments'] {
  const indexed = [
    ...(regardingUids === undefined ? [] : ['regarding.uid']),
    ...(regarding === undefined ? [] : ['regarding.name']),
    ...(mentions === undefined ? [] : ['mentions']),
  ]
  const found = fields
    .filter((one) => one.operator === '=' && isInBody(one) && !indexed.includes(one.field))
    .map(({ field, patterns }) =>
      patterns.map(field === 'mentions' ? mentionText : ({ text }) => text),
    )
    .filter((texts) => texts.length <= fragmentsMax && texts.every(isFragment))
  return found.length === 0 ? undefined : found
}

/** Keys and indexed values are known without the body, and what is computed is not in it. */
function isInBody(requirement: FieldRequirement): boolean {
  if (isOfIndex(requirement) || isBound(requirement) || isTextTerm(requirement)) return false
  return !ELSEWHERE.some((field) => field === requirement.field)
}

const ELSEWHERE = ['metadata.name', 'metadata.namespace', 'workload', 'node', 'pattern']

function mentionText(pattern: ValuePattern): string {
  const mention = mentionOf(pattern)
  return mention.uid ?? mention.name.text
}

function isFragment(text: string): boolean {
  return text !== '' && isPlainText(text)
}

function isBound({ field }: FieldRequirement): boolean {
  return field === 'since' || field === 'until'
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
