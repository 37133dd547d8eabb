import type { Event } from '../../api/event.ts'
import { type EventGroup, eventsGroup } from '../../api/event-groups.ts'
import { eventType } from '../../api/schema.ts'
import { badRequest, type StatusError } from '../../api/status.ts'
import { TimeSyntaxError } from '../../api/time.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, type ParsedJson, parseJson } from '../json/json-text.ts'
import { jsonKind, StructDecoder, TypeMismatch } from '../struct/struct-decoding.ts'
import { StructEncoder } from '../struct/struct-encoding.ts'

export interface DecodedEvent {
  readonly event: Event
  /**
   * `unknown field "metadata.foo"` or `duplicate field "reason"`, in document order, at most 100.
   */
  readonly problems: readonly string[]
}

/** Thrown for a body that is not an object whose kind and version can be read. */
export class UnrecognizedBody extends Error {
  override readonly name = 'UnrecognizedBody'
}

/** Optional members of a body besides the fields of the event. */
const TYPE_NAMES: ReadonlySet<string> = new Set(['kind', 'apiVersion'])

/** The number of bytes of a body that an error message quotes. */
const SUMMARY_LENGTH = 30

/**
 * A kind or an apiVersion is truncated to this length, which is longer than any valid one and short
 * enough to quote.
 */
const TYPE_LENGTH_MAX = 512

/** Decodes a JSON body. Throws a StatusError: 400, or 413 if the body has too many values. */
export function decodeEventBody(body: Buffer, group: EventGroup): DecodedEvent {
  return decodeBody(body, group, readJson)
}

/**
 * Decodes a body in a format that `read` parses into a tree. `read` throws an UnrecognizedBody for
 * a text that it cannot parse.
 */
export function decodeBody(
  body: Buffer,
  group: EventGroup,
  read: (text: string) => ParsedJson,
): DecodedEvent {
  try {
    const { value, duplicates } = read(body.toString('utf8'))
    return decoded(value, group, duplicates)
  } catch (error) {
    throw asBadRequest(error, group.apiVersion, ` (${summaryOf(body)})`)
  }
}

/**
 * Decodes a tree, such as a patched one. Throws a StatusError 400. The event shares parts with the
 * tree, which must not be modified afterwards.
 */
export function decodeEventTree(
  tree: Json,
  group: EventGroup,
  duplicates?: ParsedJson['duplicates'],
): DecodedEvent {
  try {
    return decoded(tree, group, duplicates)
  } catch (error) {
    throw asBadRequest(error, group.apiVersion, '')
  }
}

/** The error for an event with problems when the client requested strict field validation. */
export function strictDecodingError(problems: readonly string[], apiVersion: string): StatusError {
  return cannotBeHandled(`strict decoding error: ${problems.join(', ')}`, apiVersion)
}

/** Encodes compact JSON without kind and apiVersion, the form of storage and of list items. */
export function encodeEvent(event: Event): Buffer {
  return Buffer.from(eventText(event), 'utf8')
}

/** Decodes the output of `encodeEvent`. Throws a StatusError for other bytes. */
export function readEncoded(body: Buffer): Event {
  return decodeEventTree(JSON.parse(body.toString()) as Json, storedGroup).event
}

/** Stored events have no group, but the shape of this one. */
const storedGroup: EventGroup = { ...eventsGroup(''), apiVersion: '' }

const encoder = new StructEncoder(eventType)

/** Never returns `{}`, since eventTime is always encoded, if only as null. */
function eventText(event: Event): string {
  return encoder.text(event as unknown as JsonObject)
}

function readJson(text: string): ParsedJson {
  try {
    return parseJson(text, EVENT_VALUES_MAX)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new UnrecognizedBody(`couldn't get version/kind; json parse error: ${error.message}`)
  }
}

function decoded(
  value: Json,
  group: EventGroup,
  duplicates: ParsedJson['duplicates'] | undefined,
): DecodedEvent {
  if (value !== null && !isObject(value)) throw new UnrecognizedBody(notAnObject(value))
  const tree = value ?? {}
  checkType(tree, group.apiVersion)
  const decoder = new StructDecoder(TYPE_NAMES, duplicates)
  const read = decoder.struct(group.type, tree, '')
  read['metadata'] ??= {}
  return { event: group.toEvent(read), problems: decoder.problems }
}

/** The kind and apiVersion of a body are optional, but must match the endpoint if they are set. */
function checkType(tree: JsonObject, expected: string): void {
  const apiVersion = typeName(tree, 'apiVersion') || expected
  const kind = typeName(tree, 'kind') || 'Event'
  if (apiVersion === expected && kind === 'Event') return
  if (apiVersion.split('/', 3).length === 3) {
    throw new UnrecognizedBody(`unexpected GroupVersion string: ${apiVersion}`)
  }
  if (kind !== 'Event') {
    const version = goQuote(versionOf(apiVersion))
    throw badRequest(
      `${kind} in version ${version} cannot be handled as a Event: no kind ${goQuote(kind)} is registered for version ${goQuote(apiVersion)}`,
    )
  }
  throw badRequest(
    `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
  )
}

function typeName(tree: JsonObject, name: string): string {
  const value = memberOf(tree, name) ?? ''
  if (typeof value === 'string') return value.slice(0, TYPE_LENGTH_MAX)
  throw new UnrecognizedBody(
    `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(value)} into Go struct field .${name} of type string`,
  )
}

function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf('/') + 1)
}

function notAnObject(value: Json): string {
  return `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKind(value)} into Go value of type Event`
}

function asBadRequest(error: unknown, apiVersion: string, summary: string): unknown {
  if (error instanceof UnrecognizedBody) {
    const what = 'the object provided is unrecognized (must be of type Event)'
    return badRequest(`${what}: ${error.message}${summary}`, error)
  }
  if (error instanceof TypeMismatch || error instanceof TimeSyntaxError) {
    return cannotBeHandled(error.message, apiVersion)
  }
  return error
}

function cannotBeHandled(why: string, apiVersion: string): StatusError {
  const version = goQuote(versionOf(apiVersion))
  return badRequest(`Event in version ${version} cannot be handled as a Event: ${why}`)
}

/** Shows the first bytes of a body as text if it may be JSON, otherwise in hexadecimal. */
function summaryOf(body: Buffer): string {
  if (body.length === 0) return '<empty>'
  const start = body.subarray(0, SUMMARY_LENGTH)
  const shown = start[0] === 0x7b ? start.toString('utf8') : start.toString('hex')
  return body.length > SUMMARY_LENGTH ? `${shown} ...` : shown
}
