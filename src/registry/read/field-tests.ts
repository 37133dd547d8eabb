/** How each field requirement is checked against an event. */

import { kindOfWord } from '../../api/kind-words.ts'
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import { parseTimeValue } from '../../api/selectors/time-value.ts'
import { badRequest } from '../../api/status.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { ObjectReference } from '../../storage/event-fields.ts'
import type { Mention } from '../../storage/requires.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { textsOf, textTest } from './text-test.ts'

export type EventTest = (stored: StoredEvent) => boolean

/** The tests of all requirements, cheap ones first. Durations are before `nowMs`. */
export function testsOf(fields: readonly FieldRequirement[], nowMs: number): readonly EventTest[] {
  const texts = textsOf(fields)
  const others = fields.filter(({ field }) => field !== 'text')
  return [
    ...others.map((one) => testOf(one, nowMs)),
    ...(texts.length === 0 ? [] : [textTest(texts)]),
  ]
}

/** Throws a 400 when the value is malformed. */
function testOf(requirement: FieldRequirement, nowMs: number): EventTest {
  const { field, operator, value } = requirement
  const isEqual = operator === '='
  switch (field) {
    case 'since': {
      const sinceMs = boundOf(requirement, nowMs)
      return ({ fields }) => fields.lastSeenMs >= sinceMs
    }
    case 'until': {
      const untilMs = boundOf(requirement, nowMs)
      return ({ fields }) => fields.lastSeenMs < untilMs
    }
    case 'mentions': {
      const mention = mentionOf(value)
      return ({ fields }) =>
        (isMentioned(fields.regarding, mention) || isMentioned(fields.related, mention)) === isEqual
    }
    default: {
      const read = readers[field as PlainField]
      return (stored) => (read(stored) === value) === isEqual
    }
  }
}

/** The time of a `since` or `until`. */
export function boundOf({ field, operator, value }: FieldRequirement, nowMs: number): number {
  if (operator === '!=') throw badRequest(`${field} is a bound: write ${field}=<time>`)
  return parseTimeValue(field, value, nowMs)
}

/** `Pod/web-0`, or a uid. */
export function mentionOf(value: string): Mention {
  const [kind = '', name, surplus] = value.split('/')
  if (name === undefined && kind !== '') return { uid: kind }
  if (kind !== '' && name !== undefined && name !== '' && surplus === undefined) {
    return { kind: kindOfWord(kind), name }
  }
  throw badRequest(
    `mentions: ${JSON.stringify(truncate(value))}: write a kind and a name, such as Pod/web-0, or a uid`,
  )
}

function isMentioned({ kind, name, uid }: ObjectReference, mention: Mention): boolean {
  if (mention.uid !== undefined) return uid === mention.uid
  return name === mention.name && kind.toLowerCase() === mention.kind
}

/** The value that the field must have, if one is required. */
export function requiredValue(
  fields: readonly FieldRequirement[],
  field: SelectableField,
): string | undefined {
  return fields.find((one) => one.field === field && one.operator === '=')?.value
}

type PlainField = Exclude<SelectableField, 'since' | 'until' | 'mentions' | 'text'>

const readers: Readonly<Record<PlainField, (stored: StoredEvent) => string>> = {
  'metadata.name': (stored) => stored.key.name,
  'metadata.namespace': (stored) => stored.key.namespace,
  reason: (stored) => stored.fields.reason,
  type: (stored) => stored.fields.type,
  action: (stored) => stored.fields.action,
  reportingController: (stored) => stored.fields.reportingController,
  reportingInstance: (stored) => stored.fields.reportingInstance,
  source: ({ fields }) => fields.sourceComponent || fields.reportingController,
  controller: ({ fields }) => fields.reportingController || fields.sourceComponent,
  'regarding.kind': (stored) => stored.fields.regarding.kind,
  'regarding.namespace': (stored) => stored.fields.regarding.namespace,
  'regarding.name': (stored) => stored.fields.regarding.name,
  'regarding.uid': (stored) => stored.fields.regarding.uid,
  'regarding.apiVersion': (stored) => stored.fields.regarding.apiVersion,
  'regarding.resourceVersion': (stored) => stored.fields.regarding.resourceVersion,
  'regarding.fieldPath': (stored) => stored.fields.regarding.fieldPath,
  'related.kind': (stored) => stored.fields.related.kind,
  'related.namespace': (stored) => stored.fields.related.namespace,
  'related.name': (stored) => stored.fields.related.name,
  'related.uid': (stored) => stored.fields.related.uid,
  'related.apiVersion': (stored) => stored.fields.related.apiVersion,
  'related.resourceVersion': (stored) => stored.fields.related.resourceVersion,
  'related.fieldPath': (stored) => stored.fields.related.fieldPath,
}
