/**
 * The annotation in which kubectl stores the configuration of a client-side apply. A server-side apply
 * by kubectl updates it, so that users can return to client-side apply.
 */
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, parseJson } from '../../codec/json/json-text.ts'
import { jsonOf } from '../../codec/json/json-write.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { type AppliedConfig, readConfig } from './applied-config.ts'
import { difference, type FieldSet, NO_FIELDS } from './field-set.ts'
import { changesOf } from './structured-diff.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** The limit that validation sets for all annotations together. */
const ANNOTATIONS_BYTES_MAX = 262_144

/** Fields unchanged since the last client-side apply: kubectl may take them from any owner. */
export function allowedByLastApplied(live: JsonObject): FieldSet {
  const config = lastApplied(memberOf(annotationsOf(live), LAST_APPLIED))
  if (config === undefined) return NO_FIELDS
  const { set, removed } = changesOf(live, config.tree)
  return difference(difference(config.fields, set), removed)
}

function lastApplied(annotation: Json | undefined): AppliedConfig | undefined {
  if (typeof annotation !== 'string' || annotation === '') return undefined
  try {
    const { value: sent } = parseJson(annotation, EVENT_VALUES_MAX)
    const apiVersion = isObject(sent) ? memberOf(sent, 'apiVersion') : undefined
    if (typeof apiVersion !== 'string') return undefined
    const isCore = apiVersion === coreGroup.apiVersion
    return readConfig(sent, isCore ? coreGroup : { ...eventsGroup(''), apiVersion })
  } catch (error) {
    // Any client may write the annotation; an invalid one allows nothing.
    if (error instanceof JsonSyntaxError || error instanceof StatusError) return undefined
    throw error
  }
}

/** The event with its annotation, if it has one, updated to the applied configuration. */
export function withLastApplied(event: JsonObject, sent: JsonObject): JsonObject {
  const annotations = annotationsOf(event)
  const last = memberOf(annotations, LAST_APPLIED)
  if (typeof last !== 'string' || last === '') return event
  const { [LAST_APPLIED]: _, ...others } = annotations
  const next = { ...others, [LAST_APPLIED]: `${jsonOf(withoutAnnotation(sent))}\n` }
  const isTooLong = byteLength(next) > ANNOTATIONS_BYTES_MAX
  return withAnnotations(event, isTooLong ? others : next)
}

function withoutAnnotation(sent: JsonObject): JsonObject {
  const annotations = annotationsOf(sent)
  if (!Object.hasOwn(annotations, LAST_APPLIED)) return sent
  const { [LAST_APPLIED]: _, ...others } = annotations
  return withAnnotations(sent, others)
}

function withAnnotations(event: JsonObject, annotations: JsonObject): JsonObject {
  return { ...event, metadata: { ...(event['metadata'] as JsonObject), annotations } }
}

function annotationsOf(event: JsonObject): JsonObject {
  const metadata = memberOf(event, 'metadata') ?? {}
  const annotations = isObject(metadata) ? memberOf(metadata, 'annotations') : undefined
  return isObject(annotations) ? annotations : {}
}

function byteLength(annotations: JsonObject): number {
  let bytes = 0
  for (const [name, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(String(value))
  }
  return bytes
}
