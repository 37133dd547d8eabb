import type { Event } from '../api/event.ts'
import { type EventGroup, eventsGroup } from '../api/event-groups.ts'
import { eventType } from '../api/schema.ts'
import { badRequest, type StatusError } from '../api/status.ts'
import { TimeSyntaxError } from '../api/time.ts'
import { goQuote } from '../lib/go-quote.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, type ParsedJson, parseJson } from './json-text.ts'
import { jsonKind, StructDecoder, TypeMismatch } from './struct-decoding.ts'
import { StructEncoder } from './struct-encoding.ts'

export interface DecodedEvent {
  readonly event: Event
  /** `unknown field "metadata.foo"`, `duplicate field "reason"`: in document order, at most 100. */
  readonly problems: readonly string[]
}

/** What was sent does not tell what it is. */
export class UnrecognizedBody extends Error {
  override readonly name = 'UnrecognizedBody'
}

/** What a body may say about itself without having to. */
const TYPE_NAMES: ReadonlySet<string> = new Set(['kind', 'apiVersion'])

/** As much of a body as an error shows. */
const SUMMARY_LENGTH = 30

/** As much of a kind or an apiVersion as is looked at: longer than any, and short enough to show. */
const TYPE_LENGTH_MAX = 512

/** An event as a client sent it, in JSON; fails with a StatusError: 400, or 413 for too much. */
export function decodeEventBody(body: Buffer, group: EventGroup): DecodedEvent {
  return decodeSent(body, group, readJson)
}

/**
 * An event as a client sent it, in a format that `read` makes a tree of. What `read` cannot read it
 * throws as an UnrecognizedBody.
 */
export function decodeSent(
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
 * An event out of a tree, such as a patched one; fails with a StatusError 400. The event shares
 * parts with the tree, which must not change any more.
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

/** The answer to an event with problems, for callers who asked for strictness. */
export function strictDecodingError(problems: readonly string[], apiVersion: string): StatusError {
  return cannotBeHandled(`strict decoding error: ${problems.join(', ')}`, apiVersion)
}

/** Compact JSON without kind and apiVersion: the form of an item in a list, and of what is stored. */
export function encodeEvent(event: Event): Buffer {
  return Buffer.from(eventText(event), 'utf8')
}

/** What `encodeEvent` made, read. Fails with a StatusError when it is not that. */
export function readEncoded(body: Buffer): Event {
  return decodeEventTree(JSON.parse(body.toString()) as Json, storedGroup).event
}

/** What is stored has no group; it has the shape of this one. */
const storedGroup: EventGroup = { ...eventsGroup(''), apiVersion: '' }

const encoder = new StructEncoder(eventType)

/** There is always a member: eventTime, if only as null. */
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

/** Nobody has to say what a body is; whoever does must say what the endpoint takes. */
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

/** The beginning of a body: as text if it may be JSON, else in hexadecimal. */
function summaryOf(body: Buffer): string {
  if (body.length === 0) return '<empty>'
  const start = body.subarray(0, SUMMARY_LENGTH)
  const shown = start[0] === 0x7b ? start.toString('utf8') : start.toString('hex')
  return body.length > SUMMARY_LENGTH ? `${shown} ...` : shown
}
