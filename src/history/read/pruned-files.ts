import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import { exactly, isAnyMatch, type ValuePattern } from '../../api/selectors/value-pattern.ts'
import type { Requires } from '../../storage/requires.ts'
import type { TimeWindow } from '../../storage/summary.ts'
import type { InputFile, ReadScope } from '../engine/protocol.ts'
import type { Bounds } from '../manifest.ts'
import { mayMatch } from './byte-order.ts'

export interface Wanted extends ReadScope {
  readonly requires: Requires | undefined
  /** The rows that are read have occurrences within it. Default: any. */
  readonly occurred?: TimeWindow | undefined
}

/** The files that may have rows that match, in the same order. */
export function prunedFiles(files: readonly InputFile[], wanted: Wanted): readonly InputFile[] {
  const { cluster, namespace, requires = {}, occurred = {} } = wanted
  const { sinceMs, untilMs } = requires
  const home = namespace === undefined ? [] : [exactly(namespace)]
  const namespaces = [...home, ...patternsOf(requires, 'metadata.namespace')]
  const kinds = patternsOf(requires, 'regarding.kind')
  const objects = patternsOf(requires, 'regarding.name')
  return files.filter(
    ({ cluster: own, file }) =>
      (cluster === undefined || own === cluster) &&
      isWithin(file.seen, { sinceMs, untilMs }) &&
      isWithin(file.occurred, occurred) &&
      namespaces.every((patterns) => mayMatch(patterns, file.namespaces)) &&
      kinds.every((patterns) => mayMatch(patterns, file.kinds)) &&
      objects.every((patterns) => mayMatch(patterns, file.objects)),
  )
}

/** Whether a time between the bounds may be in the window. */
export function isWithin([from, to]: Bounds<number>, { sinceMs, untilMs }: TimeWindow): boolean {
  return (sinceMs === undefined || to >= sinceMs) && (untilMs === undefined || from < untilMs)
}

/** Each match has, in this field, one value of each of these lists. */
function patternsOf(
  requires: Requires,
  field: SelectableField,
): readonly (readonly ValuePattern[])[] {
  const { fields, namespaces, values = [], regarding } = requires
  const isRequired = (one: Pick<FieldRequirement, 'field' | 'operator'>) =>
    one.field === field && one.operator === '='
  if (fields !== undefined) return fields.filter(isRequired).map(({ patterns }) => patterns)
  if (field === 'metadata.namespace') return namespaces === undefined ? [] : [namespaces]
  if (field === 'regarding.name') {
    return regarding === undefined ? [] : [regarding.flatMap(({ name }) => exactly(name))]
  }
  return values.filter(isRequired).map(({ patterns }) => patterns)
}

/** The values that a field of a match can have; undefined when there are others as well. */
export function exactNamespaces({
  requires = {},
  namespace,
}: Wanted): readonly string[] | undefined {
  const required = patternsOf(requires, 'metadata.namespace')
  if (namespace !== undefined) {
    return required.every((patterns) => isAnyMatch(patterns, namespace)) ? [namespace] : []
  }
  const exact = required.find((patterns) => patterns.every(({ isPrefix }) => !isPrefix))
  return exact?.map(({ text }) => text)
}
