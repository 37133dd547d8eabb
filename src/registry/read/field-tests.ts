/** How each field requirement is checked against an event. */

import { kindOfWord } from '../../api/kind-words.ts'
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import { parseTimeValue } from '../../api/selectors/time-value.ts'
import {
  isAnyMatch,
  isMatch,
  soleValue,
  type ValuePattern,
} from '../../api/selectors/value-pattern.ts'
import { badRequest } from '../../api/status.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { ObjectReference } from '../../storage/event-fields.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { isTextTerm, textsOf, textTest } from './text-test.ts'

export type EventTest = (stored: StoredEvent) => boolean

/** The tests of all requirements, cheap ones first. Durations are before `nowMs`. */
export function testsOf(fields: readonly FieldRequirement[], nowMs: number): readonly EventTest[] {
  const texts = textsOf(fields)
  const others = fields.filter((one) => !isTextTerm(one))
  return [
    ...others.map((one) => testOf(one, nowMs)),
    ...(texts.length === 0 ? [] : [textTest(texts)]),
  ]
}

/** Throws a 400 when the value is malformed. */
function testOf(requirement: FieldRequirement, nowMs: number): EventTest {
  const { field, operator, patterns } = requirement
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
      const wanted = patterns.map(mentionOf)
      return ({ fields }) =>
        (isAnyOf(wanted, fields.regarding) || isAnyOf(wanted, fields.related)) === isEqual
    }
    default: {
      const read = readers[field as PlainField]
      const value = soleValue(patterns)
      if (value !== undefined) return (stored) => (read(stored) === value) === isEqual
      return (stored) => isAnyMatch(patterns, read(stored)) === isEqual
    }
  }
}

/** The time of a `since` or `until`. */
export function boundOf({ field, operator, patterns }: FieldRequirement, nowMs: number): number {
  if (operator === '!=') throw badRequest(`${field} is a bound: write ${field}=<time>`)
  return parseTimeValue(field, soleValue(patterns) ?? '', nowMs)
}

/** An object by lower-case kind and name, or the beginning of a name, or by uid. */
export type MentionPattern =
  | { readonly kind: string; readonly name: ValuePattern; readonly uid?: undefined }
  | { readonly uid: string }

/** Parses `Pod/web-0`, `Pod/web-*`, or a uid. */
export function mentionOf({ text, isPrefix }: ValuePattern): MentionPattern {
  const [kind = '', name, surplus] = text.split('/')
  if (name === undefined && !isPrefix && UID.test(kind)) return { uid: kind }
  if (kind !== '' && name !== undefined && name !== '' && surplus === undefined) {
    return { kind: kindOfWord(kind), name: { text: name, isPrefix } }
  }
  const shown = `${truncate(text)}${isPrefix ? '*' : ''}`
  const example = name === undefined && kind !== '' ? shown : 'web-0'
  throw badRequest(
    `mentions: ${JSON.stringify(shown)}: write a kind and a name, such as Pod/${example}, or a uid`,
  )
}

/**
 * The beginning of a UUID, or of the hash that static pods have instead. Anything else is taken for
 * a name whose kind was forgotten: as a uid it would find nothing.
 */
const UID = /^[\da-f]{8}[\da-f-]*$/i

function isAnyOf(mentions: readonly MentionPattern[], object: ObjectReference): boolean {
  for (const mention of mentions) if (isMentioned(object, mention)) return true
  return false
}

function isMentioned({ kind, name, uid }: ObjectReference, mention: MentionPattern): boolean {
  if (mention.uid !== undefined) return uid === mention.uid
  return isMatch(mention.name, name) && kind.toLowerCase() === mention.kind
}

type PlainField = Exclude<SelectableField, 'since' | 'until' | 'mentions' | 'text' | 'search'>

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
