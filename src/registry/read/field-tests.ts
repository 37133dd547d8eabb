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
import { notePatternOf, placeOf, workloadOf } from '../../incidents/marks.ts'
import { parsePatternId } from '../../incidents/pattern.ts'
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
    case 'node': {
      for (const pattern of patterns) checkNode(pattern)
      return (stored) => isAnyMatch(patterns, placeOf(stored)) === isEqual
    }
    case 'workload': {
      const wanted = patterns.map(workloadPatternOf)
      return (stored) =>
        (isAnyOf(wanted, workloadOf(stored)) || isAnyOf(wanted, stored.fields.regarding)) ===
        isEqual
    }
    case 'pattern': {
      const wanted = patterns.map(patternNumberOf)
      return (stored) => wanted.includes(notePatternOf(stored)) === isEqual
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

/** An object by lower-case kind and name, or the beginning of a name. */
interface ObjectPattern {
  readonly kind: string
  readonly name: ValuePattern
  readonly uid?: undefined
}

/** The same, or by uid. */
export type MentionPattern = ObjectPattern | { readonly uid: string }

/** Parses `Pod/web-0`, `Pod/web-*`, or a uid. */
export function mentionOf(pattern: ValuePattern): MentionPattern {
  const { text, isPrefix } = pattern
  if (!isPrefix && UID.test(text)) return { uid: text }
  return (
    objectPatternOf(pattern) ??
    fail(
      'mentions',
      pattern,
      `a kind and a name, such as Pod/${exampleOf(pattern, 'web-0')}, or a uid`,
    )
  )
}

/** Parses `Deployment/checkout` or `Deployment/check*`. */
export function workloadPatternOf(pattern: ValuePattern): ObjectPattern {
  return (
    objectPatternOf(pattern) ??
    fail(
      'workload',
      pattern,
      `a kind and a name, such as Deployment/${exampleOf(pattern, 'checkout')}`,
    )
  )
}

/** Other labels take a kind and a name. */
function checkNode(pattern: ValuePattern): void {
  const [, name] = pattern.text.split('/')
  if (name !== undefined) fail('node', pattern, `the name alone: node=${truncate(name)}`)
}

/** Parses the id of a pattern. */
export function patternNumberOf(pattern: ValuePattern): number {
  const number = pattern.isPrefix ? undefined : parsePatternId(pattern.text)
  return (
    number ?? fail('pattern', pattern, 'the eight digits that kubectl get eventsummaries shows')
  )
}

function objectPatternOf({ text, isPrefix }: ValuePattern): ObjectPattern | undefined {
  const [resource = '', name = '', surplus] = text.split('/')
  if (resource === '' || name === '' || surplus !== undefined) return undefined
  // kubectl prints `deployment.apps/checkout`.
  const [kind = ''] = resource.split('.')
  return { kind: kindOfWord(kind), name: { text: name, isPrefix } }
}

function fail(label: string, pattern: ValuePattern, wanted: string): never {
  throw badRequest(`${label}: ${JSON.stringify(shownOf(pattern))}: write ${wanted}`)
}

/** What was probably meant as a name. */
function exampleOf(pattern: ValuePattern, usual: string): string {
  return pattern.text === '' || pattern.text.includes('/') ? usual : shownOf(pattern)
}

function shownOf({ text, isPrefix }: ValuePattern): string {
  return `${truncate(text)}${isPrefix ? '*' : ''}`
}

/**
 * The beginning of a UUID, or of the hash that static pods have instead. Anything else is taken for
 * a name whose kind was forgotten: as a uid it would find nothing.
 */
const UID = /^[\da-f]{8}[\da-f-]*$/i

function isAnyOf(mentions: readonly MentionPattern[], object: Named): boolean {
  for (const mention of mentions) if (isMentioned(object, mention)) return true
  return false
}

type Named = Pick<ObjectReference, 'kind' | 'name'> & Partial<Pick<ObjectReference, 'uid'>>

function isMentioned({ kind, name, uid }: Named, mention: MentionPattern): boolean {
  if (mention.uid !== undefined) return uid === mention.uid
  return isMatch(mention.name, name) && kind.toLowerCase() === mention.kind
}

type PlainField = Exclude<
  SelectableField,
  'since' | 'until' | 'mentions' | 'text' | 'search' | 'workload' | 'node' | 'pattern'
>

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
