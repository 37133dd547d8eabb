import type { Event } from '../api/event.ts'
import { eventType } from '../api/schema.ts'
import { badRequest, StatusError } from '../api/status.ts'
import { duplicateFields } from '../codec/duplicate-fields.ts'
import { decodeEventTree } from '../codec/event-json.ts'
import { eventTree } from '../codec/event-view.ts'
import {
  EVENT_VALUES_MAX,
  JSON_VALUES_MAX,
  JsonSyntaxError,
  type ParsedJson,
  parseJson,
} from '../codec/json-text.ts'
import { PROBLEMS_MAX } from '../codec/struct-decoding.ts'
import { goQuote } from '../lib/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../lib/json.ts'
import { applyJsonPatch, readJsonPatch } from '../registry/json-patch.ts'
import { applyMergePatch } from '../registry/merge-patch.ts'
import { PatchError, patchStatus } from '../registry/patch-error.ts'
import type { CurrentEvent } from '../registry/stored-event.ts'
import { applyStrategicMerge } from '../registry/strategic-merge.ts'
import { formatVersion } from '../storage/resource-version.ts'
import { applyEvent } from './apply.ts'
import { admitOnce, type Endpoint, type EventApi, type OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject, type PatchFormat, patchFormat } from './negotiate.ts'
import {
  acceptedEvent,
  afterReading,
  checkName,
  placedIn,
  receiveBytes,
  type SentEvent,
} from './sent-event.ts'
import { withWarnings } from './warnings.ts'
import { type FieldValidation, managerOf, readPatchOptions } from './write-options.ts'

/**
 * PATCH …/namespaces/{namespace}/events/{name}, by JSON patch, merge patch or strategic merge; what is
 * applied goes its own way.
 */
export function patchEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, forms, group, view } = api
  const apply = applyEvent(api)
  return async (request, path, caller) => {
    const format = patchFormat(request)
    if (format === 'apply') return apply(request, path, caller)
    const { namespace, name } = path
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBytes(request)
    const { fieldValidation, isDryRun, fieldManager } = readPatchOptions(request.query, {
      isApply: false,
    })
    const patch = await patchReading(body, format)
    let warnings: readonly string[] = []
    const change = (current: CurrentEvent): Event => {
      const read = patch()
      // In case it cannot be applied: what is said twice may be why.
      warnings = fieldValidation === 'Warn' ? read.problems : []
      const sent = patched(current, read, { group, view, fieldValidation })
      ;({ warnings } = sent)
      checkName(sent.event, name)
      return placedIn(namespace, sent.event)
    }
    const admit = admitOnce(api, caller)
    const manager = (): string => managerOf(fieldManager, request.headers['user-agent'])
    const event = await withWarnings(
      () => warnings,
      () => registry.patch({ namespace, name }, change, { isDryRun, admit, manager }),
    )
    return eventResponse(200, form, event, warnings)
  }
}

interface Patch {
  readonly apply: (document: JsonObject) => Json
  /** What a client may have meant otherwise: names nobody knows, or given twice. */
  readonly problems: readonly string[]
}

/**
 * A patch that is read once, before it is needed. What is wrong with it is told when it is needed and
 * not before: that an event is missing comes first.
 */
async function patchReading(
  body: Buffer,
  format: Exclude<PatchFormat, 'apply'>,
): Promise<() => Patch> {
  try {
    const patch = await readPatch(body, format)
    await afterReading(body)
    return () => patch
  } catch (error) {
    return () => {
      throw error
    }
  }
}

async function readPatch(body: Buffer, format: Exclude<PatchFormat, 'apply'>): Promise<Patch> {
  const parsed = parsedPatch(body, format)
  await afterReading(body)
  const repeated = duplicateFields(parsed)
  try {
    return patchOf(format, parsed.value, repeated)
  } catch (error) {
    const problems = operationProblems(repeated, [])
    return { apply: () => raised(error), problems }
  }
}

function parsedPatch(body: Buffer, format: PatchFormat): ParsedJson {
  try {
    return parseJson(body.toString(), format === 'json' ? JSON_VALUES_MAX : EVENT_VALUES_MAX)
  } catch (error) {
    throw refusalOf(error)
  }
}

function patchOf(
  format: Exclude<PatchFormat, 'apply'>,
  value: Json,
  repeated: readonly string[],
): Patch {
  const problems = repeated.map((field) => `duplicate field ${goQuote(field)}`)
  switch (format) {
    case 'json': {
      const patch = readJsonPatch(value)
      return {
        apply: (document) => applyJsonPatch(withManagedFields(document), patch),
        problems: operationProblems(repeated, patch.unknownFields),
      }
    }
    case 'merge':
      return { apply: (document) => applyMergePatch(document, value), problems }
    case 'strategic':
      return { apply: (document) => applyStrategicMerge(document, value, eventType), problems }
  }
}

/**
 * Kubernetes' events always have managedFields, and scripts remove them by JSON patch, which fails
 * for members that are not there.
 */
function withManagedFields(document: JsonObject): Json {
  const metadata = memberOf(document, 'metadata')
  if (!isObject(metadata) || memberOf(metadata, 'managedFields') !== undefined) return document
  return { ...document, metadata: { ...metadata, managedFields: [] } }
}

function raised(error: unknown): never {
  throw error
}

/** What is unknown and repeated is told once, as unknown. */
function operationProblems(
  repeated: readonly string[],
  unknown: readonly string[],
): readonly string[] {
  const known = repeated.filter((field) => !unknown.includes(field))
  return [
    ...known.map((field) => `json patch duplicate field ${goQuote(field)}`),
    ...unknown.map((field) => `json patch unknown field ${goQuote(field)}`),
  ]
}

/** The event as the patch leaves it, read as strictly as if it had been sent. */
function patched(
  { stored }: CurrentEvent,
  patch: Patch,
  options: Pick<EventApi, 'group' | 'view'> & { readonly fieldValidation: FieldValidation },
): SentEvent {
  const tree = eventTree(stored.body, options.view)
  const metadata = tree['metadata'] as { [name: string]: Json }
  setMember(metadata, 'resourceVersion', formatVersion(stored.version))
  try {
    const decoded = decodeEventTree(patch.apply(tree), options.group)
    const problems = [...patch.problems, ...decoded.problems].slice(0, PROBLEMS_MAX)
    if (options.fieldValidation === 'Strict' && problems.length > 0) {
      throw unusable(`strict decoding error: ${problems.join(', ')}`)
    }
    const when = ' after mutating admission happens'
    return acceptedEvent({ ...decoded, problems }, options.fieldValidation, when)
  } catch (error) {
    // What cannot be read any more is the fault of the patch, not of a body.
    if (error instanceof StatusError && error.reason === 'BadRequest') throw unusable(error.message)
    throw refusalOf(error)
  }
}

function refusalOf(error: unknown): unknown {
  if (error instanceof PatchError) return patchStatus(error)
  if (error instanceof JsonSyntaxError) {
    return badRequest(`error decoding patch: ${error.message}`, error)
  }
  return error
}

/** The patch can be applied, but what it makes is no event. */
function unusable(why: string): StatusError {
  return new StatusError('Invalid', ` "" is invalid: patch: Invalid value: ${why}`, {
    details: {
      causes: [{ reason: 'FieldValueInvalid', message: `Invalid value: ${why}`, field: 'patch' }],
    },
  })
}
