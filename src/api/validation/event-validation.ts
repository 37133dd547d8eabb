import type { Event, EventSeries, EventSource, ObjectReference } from '../event.ts'
import {
  cutText,
  type FieldError,
  invalidField,
  invalidText,
  requiredField,
} from './field-error.ts'
import { checkFinalizersQualified, checkMeta, checkMetaUpdate } from './meta-validation.ts'
import { exceedsBytes, pathSegmentNames, qualifiedNameProblems, subdomainNames } from './names.ts'
import { Problems, truncatedJson } from './problems.ts'

export const EVENT_TYPES = ['Normal', 'Warning'] as const

const WORD_BYTES_MAX = 128
const NOTE_BYTES_MAX = 1024
/** An event that was observed once has no series. */
const SERIES_COUNT_MIN = 2

/** Returns the problems of a new event. The server has already set its name and namespace. */
export function createProblems(event: Event): readonly FieldError[] {
  const problems = new Problems()
  checkCommon(problems, event)
  checkMeta(problems, event.metadata, subdomainNames)
  checkFinalizersQualified(problems, event.metadata)
  checkSeries(problems, event.series)
  if (event.eventTime === undefined) problems.add(requiredField('eventTime'))
  checkType(problems, event.type ?? '')
  checkDeprecatedUnset(problems, event)
  return problems.list()
}

/** Returns the problems of a new event in core/v1, where a name need only be a path segment. */
export function coreCreateProblems(event: Event): readonly FieldError[] {
  const problems = new Problems()
  checkCommon(problems, event)
  if (problems.list().length > 0) return problems.list()
  checkMeta(problems, event.metadata, pathSegmentNames)
  return problems.list()
}

/** Returns the problems of an update in core/v1, which may change any field. */
export function coreUpdateProblems(event: Event, old: Event): readonly FieldError[] {
  const meta = event.metadata
  const problems = new Problems()
  checkMeta(problems, meta, pathSegmentNames)
  checkMetaUpdate(problems, meta, old.metadata)
  checkCommon(problems, event)
  return problems.list()
}

/** Returns the problems of an event that replaces `old`. Only metadata and series may change. */
export function updateProblems(event: Event, old: Event): readonly FieldError[] {
  const meta = event.metadata
  const problems = new Problems()
  checkMeta(problems, meta, pathSegmentNames)
  checkMetaUpdate(problems, meta, old.metadata)
  checkCommon(problems, event)
  checkFinalizersQualified(problems, meta)
  if (!isSameSeries(event.series, old.series)) checkSeries(problems, event.series)
  checkUnchanged(problems, event, old)
  return problems.list()
}

/** Validates new and updated events. Old events without an eventTime have fewer required fields. */
function checkCommon(problems: Problems, event: Event): void {
  const { namespace = '' } = event.metadata
  const regardingNamespace = event.regarding?.namespace ?? ''
  if (!mayRegard(event, namespace, regardingNamespace)) {
    const detail = 'does not match event.namespace'
    problems.add(invalidText('regarding.namespace', regardingNamespace, detail))
  }
  if (event.eventTime !== undefined) {
    const { reportingController = '' } = event
    if (reportingController === '') problems.add(requiredField('reportingController'))
    const details = qualifiedNameProblems(reportingController)
    problems.addInvalid('reportingController', reportingController, details)
    checkWord(problems, 'reportingInstance', event.reportingInstance)
    checkWord(problems, 'action', event.action)
    checkWord(problems, 'reason', event.reason)
    const { note = '' } = event
    if (exceedsBytes(note, NOTE_BYTES_MAX)) problems.add(tooLong('note', NOTE_BYTES_MAX))
  }
}

/** Events about cluster-scoped objects belong in `default` or, with an eventTime, `kube-system`. */
function mayRegard(event: Event, namespace: string, regardingNamespace: string): boolean {
  const dated = event.eventTime !== undefined
  if (regardingNamespace !== '') return dated || regardingNamespace === namespace
  if (namespace === 'default') return true
  return dated ? namespace === 'kube-system' : namespace === ''
}

function checkWord(problems: Problems, field: string, value = ''): void {
  if (value === '') problems.add(requiredField(field))
  else if (exceedsBytes(value, WORD_BYTES_MAX)) problems.add(tooLong(field, WORD_BYTES_MAX))
}

function tooLong(field: string, bytesMax: number): FieldError {
  return invalidText(field, '', `can have at most ${bytesMax} characters`)
}

function checkSeries(problems: Problems, series: EventSeries | undefined): void {
  if (series === undefined) return
  if ((series.count ?? 0) < SERIES_COUNT_MIN) {
    problems.add(invalidText('series.count', '', `should be at least ${SERIES_COUNT_MIN}`))
  }
  if (series.lastObservedTime === undefined) {
    problems.add(requiredField('series.lastObservedTime'))
  }
}

function checkType(problems: Problems, type: string): void {
  if (EVENT_TYPES.some((known) => known === type)) return
  problems.add(
    invalidText('type', '', `has invalid value: ${cutText(type)} (must be Normal or Warning)`),
  )
}

function checkDeprecatedUnset(problems: Problems, event: Event): void {
  const { component = '', host = '' } = event.deprecatedSource ?? {}
  const mustBeUnset = (field: string): void =>
    problems.add(invalidText(field, '', 'needs to be unset'))
  if (event.deprecatedFirstTimestamp !== undefined) mustBeUnset('deprecatedFirstTimestamp')
  if (event.deprecatedLastTimestamp !== undefined) mustBeUnset('deprecatedLastTimestamp')
  if ((event.deprecatedCount ?? 0) !== 0) mustBeUnset('deprecatedCount')
  if (component !== '' || host !== '') mustBeUnset('deprecatedSource')
}

/** All fields except metadata and series are immutable. */
function checkUnchanged(problems: Problems, event: Event, old: Event): void {
  const addImmutable = (field: string, shown: string): void =>
    problems.add(invalidField(field, shown, 'field is immutable'))
  const checkText = (field: TextField): void => {
    const value = event[field] ?? ''
    if (value !== (old[field] ?? '')) problems.addInvalid(field, value, ['field is immutable'])
  }
  const checkTime = (field: TimeField): void => {
    if (event[field] !== old[field]) addImmutable(field, truncatedJson(event[field] ?? null))
  }
  if (!isSameReference(event.regarding ?? {}, old.regarding ?? {})) {
    addImmutable('regarding', referenceText(event.regarding ?? {}))
  }
  checkText('reason')
  checkText('note')
  if (!isSameSource(event.deprecatedSource, old.deprecatedSource)) {
    addImmutable('deprecatedSource', sourceText(event.deprecatedSource))
  }
  checkTime('deprecatedFirstTimestamp')
  checkTime('deprecatedLastTimestamp')
  if ((event.deprecatedCount ?? 0) !== (old.deprecatedCount ?? 0)) {
    addImmutable('deprecatedCount', String(event.deprecatedCount ?? 0))
  }
  checkText('type')
  checkTime('eventTime')
  checkText('action')
  if (!isSameRelated(event.related, old.related)) {
    addImmutable('related', event.related === undefined ? 'null' : referenceText(event.related))
  }
  checkText('reportingController')
  checkText('reportingInstance')
}

type TextField = 'reason' | 'note' | 'type' | 'action' | 'reportingController' | 'reportingInstance'
type TimeField = 'eventTime' | 'deprecatedFirstTimestamp' | 'deprecatedLastTimestamp'

function isSameSeries(one: EventSeries | undefined, other: EventSeries | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return (one.count ?? 0) === (other.count ?? 0) && one.lastObservedTime === other.lastObservedTime
}

function isSameSource(one: EventSource = {}, other: EventSource = {}): boolean {
  return (
    (one.component ?? '') === (other.component ?? '') && (one.host ?? '') === (other.host ?? '')
  )
}

/** An empty reference differs from an unset one, unlike for `regarding`. */
function isSameRelated(
  one: ObjectReference | undefined,
  other: ObjectReference | undefined,
): boolean {
  if (one === undefined || other === undefined) return one === other
  return isSameReference(one, other)
}

function isSameReference(one: ObjectReference, other: ObjectReference): boolean {
  return REFERENCE_MEMBERS.every(([member]) => (one[member] ?? '') === (other[member] ?? ''))
}

/** Structures are printed with Go's field names and with empty members, as Kubernetes does. */
function referenceText(reference: ObjectReference): string {
  const members = REFERENCE_MEMBERS.map(([member, name]) => [name, reference[member] ?? ''])
  return truncatedJson(Object.fromEntries(members))
}

function sourceText(source: EventSource = {}): string {
  return truncatedJson({ Component: source.component ?? '', Host: source.host ?? '' })
}

const REFERENCE_MEMBERS: readonly (readonly [keyof ObjectReference, string])[] = [
  ['kind', 'Kind'],
  ['namespace', 'Namespace'],
  ['name', 'Name'],
  ['uid', 'UID'],
  ['apiVersion', 'APIVersion'],
  ['resourceVersion', 'ResourceVersion'],
  ['fieldPath', 'FieldPath'],
]
