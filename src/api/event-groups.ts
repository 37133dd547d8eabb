/**
 * The API groups that serve events: events.k8s.io/v1 (or the configured group) and the older
 * core/v1 serve the same events. Internally all events have one shape; the groups differ in their
 * field names and in their validation of new events.
 */
import { coreEventType } from './core-schema.ts'
import type { Event } from './event.ts'
import { eventType, type StructType } from './schema.ts'
import {
  coreCreateProblems,
  coreUpdateProblems,
  createProblems,
  updateProblems,
} from './validation/event-validation.ts'
import type { FieldError } from './validation/field-error.ts'

export interface EventGroup {
  /** Empty for the core group. */
  readonly name: string
  readonly apiVersion: string
  readonly type: StructType
  /** Internal names of texts that this group encodes even if empty, unlike the stored form. */
  readonly shownWhenEmpty: readonly string[]
  /** Converts an event decoded by `type` to the internal shape. The result shares its parts. */
  toEvent(read: Readonly<Record<string, unknown>>): Event
  /** Converts an event to the shape of `type`. */
  fromEvent(event: Event): Readonly<Record<string, unknown>>
  createProblems(event: Event): readonly FieldError[]
  updateProblems(event: Event, old: Event): readonly FieldError[]
}

export function eventsGroup(name: string): EventGroup {
  return {
    name,
    apiVersion: `${name}/v1`,
    type: eventType,
    shownWhenEmpty: [],
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
  shownWhenEmpty: ['reportingController', 'reportingInstance'],
  toEvent: (read) => renameFields(read, FROM_CORE) as unknown as Event,
  fromEvent: (event) =>
    renameFields(event as unknown as Readonly<Record<string, unknown>>, TO_CORE),
  createProblems: (event) => coreCreateProblems(event).map(withCoreName),
  updateProblems: (event, old) => coreUpdateProblems(event, old).map(withCoreName),
}

/** Pairs of internal and core/v1 field names, where they differ. */
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

/** The core/v1 name of a top-level field. */
export function toCoreName(name: string): string {
  return TO_CORE.get(name) ?? name
}

/** The internal name of a top-level field of core/v1. */
export function fromCoreName(name: string): string {
  return FROM_CORE.get(name) ?? name
}

function renameFields(
  object: Readonly<Record<string, unknown>>,
  names: ReadonlyMap<string, string>,
): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(object)) result[names.get(name) ?? name] = value
  return result
}

/** Replaces the field name in an error by the one that the client sent. */
function withCoreName(error: FieldError): FieldError {
  const [first = '', ...rest] = error.field.split('.')
  const core = TO_CORE.get(first)
  return core === undefined ? error : { ...error, field: [core, ...rest].join('.') }
}
