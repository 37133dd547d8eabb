/** Decodes events in request bodies, compares them with the path, and collects warnings. */
import { setImmediate } from 'node:timers/promises'
import type { Event } from '../../api/event.ts'
import type { EventGroup } from '../../api/event-groups.ts'
import { badRequest, entityTooLarge, StatusError } from '../../api/status.ts'
import { cutText } from '../../api/validation/field-error.ts'
import { dedupOwnerReferences } from '../../api/validation/owner-references.ts'
import {
  type DecodedEvent,
  decodeEventBody,
  strictDecodingError,
} from '../../codec/event/event-json.ts'
import { decodeEventMessage } from '../../codec/event/event-protobuf.ts'
import { decodeEventYaml } from '../../codec/event/event-yaml.ts'
import type { Request } from '../../http/exchange.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { type BodyMediaType, bodyMediaType } from './negotiate.ts'
import type { FieldValidation } from './write-options.ts'

/**
 * The maximum of one write to the datastore. The largest events in practice are a third of it, and
 * parsing a larger body would block the event loop for too long.
 */
const BODY_BYTES_MAX = 1024 * 1024

/** Few events are longer than a tenth of this. Parsing this much takes some milliseconds. */
const LONG_BYTES = 128 * 1024

const DECODERS: Readonly<
  Record<BodyMediaType, (bytes: Buffer, group: EventGroup) => DecodedEvent>
> = { json: decodeEventBody, yaml: decodeEventYaml, protobuf: decodeEventMessage }

/** An event from a request, with warnings for the client. */
export interface SentEvent {
  readonly event: Event
  readonly warnings: readonly string[]
}

/** An undecoded body with a supported media type. */
export interface SentBody {
  readonly bytes: Buffer
  readonly mediaType: BodyMediaType
}

export async function receiveBody(request: Request): Promise<SentBody> {
  const mediaType = bodyMediaType(request)
  return { mediaType, bytes: withinLimit(await receive(request)) }
}

/** Receives an event, a patch or delete options. Rejects with 413 if the body is too large. */
export async function receiveBytes(request: Request): Promise<Buffer> {
  return withinLimit(await receive(request))
}

function receive(request: Request): Promise<Buffer> {
  checkEncoding(request)
  return request.body()
}

function withinLimit(bytes: Buffer): Buffer {
  if (bytes.length <= BODY_BYTES_MAX) return bytes
  throw entityTooLarge(`limit is ${BODY_BYTES_MAX}`, undefined)
}

/** Throws a 415 for a compressed body, which would otherwise be reported as malformed JSON. */
function checkEncoding({ headers }: Request): void {
  const coding = headers['content-encoding'] ?? ''
  if (coding === '' || coding.toLowerCase() === 'identity') return
  throw new StatusError(
    'UnsupportedMediaType',
    `the body of the request is encoded as ${goQuote(truncate(coding))} - send it unencoded, without Content-Encoding`,
  )
}

/**
 * Yields to the event loop after a long body, since parsing it took a while, the next step takes as
 * long again, and other requests wait.
 */
export function yieldIfLong(bytes: Buffer): Promise<void> | undefined {
  return bytes.length > LONG_BYTES ? setImmediate() : undefined
}

export function readSentEvent(
  { bytes, mediaType }: SentBody,
  options: { readonly group: EventGroup; readonly fieldValidation: FieldValidation },
): SentEvent {
  const decoded = DECODERS[mediaType](bytes, options.group)
  if (options.fieldValidation === 'Strict' && decoded.problems.length > 0) {
    throw strictDecodingError(decoded.problems, options.group.apiVersion)
  }
  return acceptedEvent(decoded, options.fieldValidation)
}

/** Turns problems into warnings if requested. `when` names the step that caused them. */
export function acceptedEvent(
  decoded: DecodedEvent,
  fieldValidation: FieldValidation,
  when?: string,
): SentEvent {
  const { meta: metadata, warning } = dedupOwnerReferences(decoded.event.metadata, when)
  return {
    event: metadata === decoded.event.metadata ? decoded.event : { ...decoded.event, metadata },
    warnings: warningsOf(fieldValidation === 'Warn' ? decoded.problems : NONE, warning),
  }
}

const NONE: readonly string[] = []

function warningsOf(problems: readonly string[], warning: string | undefined): readonly string[] {
  return warning === undefined ? problems : [...problems, warning]
}

/** Sets the namespace of the path, which the body may repeat but not contradict. */
export function placedIn(namespace: string, event: Event): Event {
  const sent = event.metadata.namespace
  if (sent === namespace) return event
  if (sent !== undefined) {
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  }
  return { ...event, metadata: { ...event.metadata, namespace } }
}

/** Throws a 400 unless the body has the name in the path. */
export function checkName(event: Event, name: string): void {
  const sent = event.metadata.name
  if (sent === name) return
  throw badRequest(
    sent === undefined
      ? `the name of the object (${name} based on URL) was undeterminable: name must be provided`
      : `the name of the object (${cutText(sent)}) does not match the name on the URL (${name})`,
  )
}
