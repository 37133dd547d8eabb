/** Events in request bodies: read, held against the path, and warned about. */
import { setImmediate } from 'node:timers/promises'
import type { Event } from '../api/event.ts'
import type { EventGroup } from '../api/event-groups.ts'
import { cutText } from '../api/field-error.ts'
import { dedupOwnerReferences } from '../api/owner-references.ts'
import { badRequest, entityTooLarge, StatusError } from '../api/status.ts'
import { type DecodedEvent, decodeEventBody, strictDecodingError } from '../codec/event-json.ts'
import { decodeEventMessage } from '../codec/event-protobuf.ts'
import { decodeEventYaml } from '../codec/event-yaml.ts'
import type { Request } from '../http/exchange.ts'
import { goQuote } from '../lib/go-quote.ts'
import { shown } from '../lib/shown.ts'
import { type BodyMediaType, bodyMediaType } from './negotiate.ts'
import type { FieldValidation } from './write-options.ts'

/**
 * What one write to the datastore is made for; the largest event that anybody means is a third of
 * it. Reading more would hold up everybody else for longer than one client may.
 */
const BODY_BYTES_MAX = 1024 * 1024

/** Few events are longer than a tenth of this; reading one takes some milliseconds. */
const LONG_BYTES = 128 * 1024

const DECODERS: Readonly<
  Record<BodyMediaType, (bytes: Buffer, group: EventGroup) => DecodedEvent>
> = { json: decodeEventBody, yaml: decodeEventYaml, protobuf: decodeEventMessage }

/** An event and what its sender should know about it. */
export interface SentEvent {
  readonly event: Event
  readonly warnings: readonly string[]
}

/** The body as it is, once its media type is known to be one of ours. */
export interface SentBody {
  readonly bytes: Buffer
  readonly mediaType: BodyMediaType
}

export async function receiveBody(request: Request): Promise<SentBody> {
  const mediaType = bodyMediaType(request)
  return { mediaType, bytes: await receiveBytes(request) }
}

/** Of an event, or of what changes or deletes one. Throws a 413 rather than read what is too large. */
export async function receiveBytes(request: Request): Promise<Buffer> {
  checkEncoding(request)
  const bytes = await request.body()
  if (bytes.length <= BODY_BYTES_MAX) return bytes
  throw entityTooLarge(`limit is ${BODY_BYTES_MAX}`, undefined)
}

/** What is compressed would be read as a broken event, and its sender none the wiser. */
function checkEncoding({ headers }: Request): void {
  const coding = headers['content-encoding'] ?? ''
  if (coding === '' || coding.toLowerCase() === 'identity') return
  throw new StatusError(
    'UnsupportedMediaType',
    `the body of the request is encoded as ${goQuote(shown(coding))} - send it as it is, without Content-Encoding`,
  )
}

/**
 * Waits for a turn of its own when a body is so long that reading it took a while: what comes next
 * takes as long again, and others wait too.
 */
export function afterReading(bytes: Buffer): Promise<void> | undefined {
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

/** Ignored or warned about, as the sender asked. `when` says what made it so, if it was not sent so. */
export function acceptedEvent(
  decoded: DecodedEvent,
  fieldValidation: FieldValidation,
  when?: string,
): SentEvent {
  const { meta: metadata, warning } = dedupOwnerReferences(decoded.event.metadata, when)
  return {
    event: metadata === decoded.event.metadata ? decoded.event : { ...decoded.event, metadata },
    warnings: [
      ...(fieldValidation === 'Warn' ? decoded.problems : []),
      ...(warning === undefined ? [] : [warning]),
    ],
  }
}

/** The path decides the namespace; a body may repeat it but not contradict it. */
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

/** A change names its event twice: in the path and in the body. */
export function checkName(event: Event, name: string): void {
  const sent = event.metadata.name
  if (sent === name) return
  throw badRequest(
    sent === undefined
      ? `the name of the object (${name} based on URL) was undeterminable: name must be provided`
      : `the name of the object (${cutText(sent)}) does not match the name on the URL (${name})`,
  )
}
