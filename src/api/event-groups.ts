/**
 * The groups in which events are served: the same events under two names, events.k8s.io/v1 (or the
 * group that was configured) and the older core/v1. Inside they have one shape; what differs is how
 * callers name the fields and how much new events are held to.
 */

import { coreEventType } from './core-schema.ts'
import type { Event } from './event.ts'
import {
  coreCreateProblems,
  coreUpdateProblems,
  createProblems,
  updateProblems,
} from './event-validation.ts'
import type { FieldError } from './field-error.ts'
import { coreFieldNames, eventFieldNames, type FieldNames } from './field-selector.ts'
import { eventType, type StructType } from './schema.ts'

export interface EventGroup {
  /** Empty for the group without a name. */
  readonly name: string
  readonly apiVersion: string
  readonly type: StructType
  /** What selectors may name. */
  readonly fieldNames: FieldNames
  /** An event read by `type`, in the one shape; it shares its parts. */
  toEvent(read: Readonly<Record<string, unknown>>): Event
  /** An event as `type` has it. */
  fromEvent(event: Event): Readonly<Record<string, unknown>>
  createProblems(event: Event): readonly FieldError[]
  updateProblems(event: Event, old: Event): readonly FieldError[]
}

export function eventsGroup(name: string): EventGroup {
  return {
    name,
    apiVersion: `${name}/v1`,
    type: eventType,
    fieldNames: eventFieldNames,
    toEvent: (read) => read as unknown as Event,
    fromEvent: (event) => event as unknown as Readonly<Record<string, unknown>>,
    createProblems,
    updateProblems,
  }
}

export const coreGroup: EventGroup = {
  name: '',
  apiVersion: 'v1',
  type: coreEventType,
  fieldNames: coreFieldNames,
  toEvent: (read) => renamed(read, FROM_CORE) as unknown as Event,
  fromEvent: (event) => renamed(event as unknown as Readonly<Record<string, unknown>>, TO_CORE),
  createProblems: (event) => coreCreateProblems(event).map(inCoreNames),
  updateProblems: (event, old) => coreUpdateProblems(event, old).map(inCoreNames),
}

/** What core/v1 calls the fields that have other names inside. */
const CORE_NAMES: readonly (readonly [string, string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
]
const TO_CORE: ReadonlyMap<string, string> = new Map(CORE_NAMES)
const FROM_CORE: ReadonlyMap<string, string> = new Map(
  CORE_NAMES.map(([name, core]) => [core, name]),
)

/** What core/v1 calls a field at the top of an event. */
export function toCoreName(name: string): string {
  return TO_CORE.get(name) ?? name
}

/** What we call it inside. */
export function fromCoreName(name: string): string {
  return FROM_CORE.get(name) ?? name
}

function renamed(
  object: Readonly<Record<string, unknown>>,
  names: ReadonlyMap<string, string>,
): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(object)) result[names.get(name) ?? name] = value
  return result
}

/** Errors name the field that the caller sent. */
function inCoreNames(error: FieldError): FieldError {
  const [first = '', ...rest] = error.field.split('.')
  const core = TO_CORE.get(first)
  return core === undefined ? error : { ...error, field: [core, ...rest].join('.') }
}
