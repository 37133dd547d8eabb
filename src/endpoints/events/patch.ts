import type { Event } from '../../api/event.ts'
import { eventType } from '../../api/schema.ts'
import { badRequest, StatusError } from '../../api/status.ts'
import { eventTree } from '../../codec/encoders/event-view.ts'
import { decodeEventTree } from '../../codec/event/event-json.ts'
import {
  EVENT_VALUES_MAX,
  JSON_VALUES_MAX,
  JsonSyntaxError,
  type ParsedJson,
  parseJson,
} from '../../codec/json/json-text.ts'
import { duplicateFields } from '../../codec/struct/duplicate-fields.ts'
import { PROBLEMS_MAX } from '../../codec/struct/struct-decoding.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { recorded } from '../../lib/tracing/span.ts'
import { applyJsonPatch, readJsonPatch } from '../../registry/patch/json-patch.ts'
import { applyMergePatch } from '../../registry/patch/merge-patch.ts'
import { PatchError, patchStatus } from '../../registry/patch/patch-error.ts'
import { applyStrategicMerge } from '../../registry/patch/strategic-merge.ts'
import type { CurrentEvent } from '../../registry/stored-event.ts'
import { formatVersion } from '../../storage/resource-version.ts'
import {
  acceptedEvent,
  checkName,
  placedIn,
  receiveBytes,
  type SentEvent,
  yieldIfLong,
} from '../request/event-body.ts'
import { negotiateObject, type PatchFormat, patchFormat } from '../request/negotiate.ts'
import { type FieldValidation, managerOf, readPatchOptions } from '../request/write-options.ts'
import { eventResponse } from '../response/respond.ts'
import { withWarnings } from '../response/warnings.ts'
import { applyEvent } from './apply.ts'
import { type Endpoint, type EventApi, type OneEvent, writerOf } from './event-api.ts'

/**
 * PATCH …/namespaces/{namespace}/events/{name}, as JSON patch, merge patch or strategic merge
 * patch. apply.ts handles server-side apply.
 */
export function patchEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, encoders, group, view } = api
  const apply = applyEvent(api)
  return async (request, target, caller) => {
    const format = patchFormat(request)
    if (format === 'apply') return apply(request, target, caller)
    const { cluster } = target
    const { namespace, name } = target.place
    const encoder = encoders.response(negotiateObject(request))
    const body = await receiveBytes(request)
    const { fieldValidation, isDryRun, fieldManager } = readPatchOptions(request.query, {
      isApply: false,
    })
    const patch = await recorded(request.span, 'decode', () => readPatch(body, format))
    let warnings: readonly string[] = []
    const change = (current: CurrentEvent): Event => {
      // Set before the patch is applied: if that fails, a duplicate field may be the reason.
      warnings = fieldValidation === 'Warn' ? patch.problems : []
      const sent = patched(current, patch, { group, view, fieldValidation })
      ;({ warnings } = sent)
      checkName(sent.event, name)
      return placedIn(namespace, sent.event)
    }
    const writer = writerOf(caller)
    const manager = (): string => managerOf(fieldManager, request.headers['user-agent'])
    const event = await withWarnings(
      () => warnings,
      () =>
        recorded(request.span, 'registry patch', (span) =>
          registry.patch({ cluster, namespace, name }, change, { isDryRun, writer, manager, span }),
        ),
    )
    return eventResponse(200, encoder, event, warnings)
  }
}

interface Patch {
  readonly apply: (document: JsonObject) => Json
  /** Unknown and duplicate fields, which may be mistakes of the client. */
  readonly problems: readonly string[]
}

/**
 * Reads a patch once for all attempts. Throws for invalid JSON; a patch that makes no sense fails
 * when it is applied, since the 404 of a missing event comes first.
 */
async function readPatch(body: Buffer, format: Exclude<PatchFormat, 'apply'>): Promise<Patch> {
  const parsed = parsedPatch(body, format)
  await yieldIfLong(body)
  const repeated = duplicateFields(parsed)
  try {
    const patch = patchOf(format, parsed.value, repeated)
    await yieldIfLong(body)
    return patch
  } catch (error) {
    const problems = operationProblems(repeated, [])
    return { apply: () => rethrown(error), problems }
  }
}

function parsedPatch(body: Buffer, format: PatchFormat): ParsedJson {
  try {
    return parseJson(body.toString(), format === 'json' ? JSON_VALUES_MAX : EVENT_VALUES_MAX)
  } catch (error) {
    throw asStatusError(error)
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
 * Adds empty managedFields before the patch is applied. Events of Kubernetes always have them, and
 * scripts remove them by JSON patch, which fails if the member is missing.
 */
function withManagedFields(document: JsonObject): Json {
  const metadata = memberOf(document, 'metadata')
  if (!isObject(metadata) || memberOf(metadata, 'managedFields') !== undefined) return document
  return { ...document, metadata: { ...metadata, managedFields: [] } }
}

function rethrown(error: unknown): never {
  throw error
}

/** A field that is both unknown and duplicate is reported once, as unknown. */
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

/** Decodes the patched event as strictly as an event in a request body. */
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
      throw invalidResult(`strict decoding error: ${problems.join(', ')}`)
    }
    const when = ' after mutating admission happens'
    return acceptedEvent({ ...decoded, problems }, options.fieldValidation, when)
  } catch (error) {
    // The patch made the event undecodable, so this is a 422 for the patch, not a 400 for the body.
    if (error instanceof StatusError && error.reason === 'BadRequest')
      throw invalidResult(error.message)
    throw asStatusError(error)
  }
}

/** Returns the StatusError for an error of a patch, and other errors unchanged. */
function asStatusError(error: unknown): unknown {
  if (error instanceof PatchError) return patchStatus(error)
  if (error instanceof JsonSyntaxError) {
    return badRequest(`error decoding patch: ${error.message}`, error)
  }
  return error
}

/** The patch can be applied, but the result is not an event. */
function invalidResult(why: string): StatusError {
  return new StatusError('Invalid', ` "" is invalid: patch: Invalid value: ${why}`, {
    details: {
      causes: [{ reason: 'FieldValueInvalid', message: `Invalid value: ${why}`, field: 'patch' }],
    },
  })
}
