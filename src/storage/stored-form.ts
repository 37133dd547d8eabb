/**
 * The stored form of events in etcd: one header line, `{"w":<write time in ms>,"i":<index>}`, then
 * the JSON that is served, without its resourceVersion, which is not known before etcd has
 * responded. To serve an event, the JSON is copied and the version inserted. What is not a field of
 * the event follows the JSON as blanks; see trailer.ts.
 */
import { isUtf8 } from 'node:buffer'
import type { Event } from '../api/event.ts'
import { eventType } from '../api/schema.ts'
import { findTypeMismatch } from '../api/validation/type-check.ts'
import { skipValue } from '../lib/json-scan.ts'
import { StorageError } from './errors.ts'
import { type EventFields, fieldsIn, type ObjectReference } from './event-fields.ts'
import { firstOccurrences, occurrencesAfter } from './occurrences.ts'
import { changeIndexMax, formatVersion, type Version } from './resource-version.ts'
import type { EventKey, NewState, StoredEvent, Unreadable } from './storage.ts'
import {
  blanksOf,
  decodeTrailer,
  encodeTrailer,
  NO_TRAILER,
  readBlanks,
  trailerStart,
  type WorkloadMark,
  writeBlanks,
} from './trailer.ts'

/** Size of the longest header: `{"w":`, 16 digits, `,"i":`, 3 digits, `}` and a line feed. */
const headerRoom = 32

const beforeTime: Buffer = Buffer.from('{"w":')
const beforeIndex: Buffer = Buffer.from(',"i":')
const afterIndex: Buffer = Buffer.from('}\n')
const braceClose = 0x7d
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const uidName: Buffer = Buffer.from('"uid":"')
/** Every body starts with this; the version is inserted right behind it. */
const bodyStart: Buffer = Buffer.from('{"metadata":{')
const versionOffset = bodyStart.length

/**
 * A value to be written to etcd. Its index is known only when it is added to a transaction, and
 * changes when it is retried in another one, so the header is written last, in front of the body.
 */
export interface PreparedValue {
  /** Space for the header, then the body and the blanks of the trailer. */
  readonly bytes: Buffer
  readonly bodyEnd: number
  readonly trailer: Buffer
  readonly versionOffset: number
  /** The event that the body encodes, if the writer still has it. */
  readonly event: Event | undefined
}

/** Throws when `body` does not start with metadata: that is a bug in the caller. */
export function prepareValue(
  body: Buffer,
  event?: Event,
  trailer: Buffer = NO_TRAILER,
): PreparedValue {
  checkBody(body)
  const bodyEnd = headerRoom + body.length
  const bytes = Buffer.allocUnsafe(bodyEnd + blanksOf(trailer))
  body.copy(bytes, headerRoom)
  writeBlanks(trailer, bytes, bodyEnd)
  return { bytes, bodyEnd, trailer, versionOffset, event }
}

/** The value for etcd. A view: it is overwritten when the header is written again. */
export function sealValue(prepared: PreparedValue, writtenAtMs: number, index: number): Buffer {
  const header = `{"w":${writtenAtMs},"i":${index}}\n`
  const start = headerRoom - header.length
  prepared.bytes.write(header, start, 'latin1')
  return prepared.bytes.subarray(start)
}

export function bodyOf({ bytes, bodyEnd }: PreparedValue): Buffer {
  return bytes.subarray(headerRoom, bodyEnd)
}

/** Whether `body` has the same bytes. */
export function isBodyOf({ bytes, bodyEnd }: PreparedValue, body: Buffer): boolean {
  return bytes.compare(body, 0, body.length, headerRoom, bodyEnd) === 0
}

export interface OpenedValue {
  readonly key: EventKey
  readonly writtenAtMs: number
  readonly index: number
  readonly body: Buffer
  readonly trailer: Buffer
  readonly versionOffset: number
  readonly fields: EventFields
}

/** A value that is not an event: written by another program, or by this server and unreadable. */
export class BadValue {
  readonly fault: ValueFault
  /** What is wrong with the value, for the log. */
  readonly what: string
  /** 0 when it is not known. */
  readonly writtenAtMs: number
  readonly index: number

  constructor(what: string, header?: Pick<Header, 'writtenAtMs' | 'index'>) {
    this.fault = header === undefined ? 'foreign' : 'damaged'
    this.what = what
    this.writtenAtMs = header?.writtenAtMs ?? 0
    this.index = Math.min(header?.index ?? 0, changeIndexMax)
  }
}

export type ValueFault = 'foreign' | 'damaged'

/**
 * Decodes the value of this key; undefined is a key that is not an event key. The whole value is
 * validated once, when it is read: it is served unchanged later, so a value that an encoder cannot
 * handle must be rejected here. `recall` returns the fields of a body that this replica wrote, and so
 * knows to be valid.
 */
export function openValue(
  value: Buffer,
  key: EventKey | undefined,
  recall?: (body: Buffer) => EventFields | undefined,
): OpenedValue | BadValue {
  const header = readHeader(value)
  if (header === undefined) return new BadValue('it does not have the header of tidings')
  const { writtenAtMs, index } = header
  if (index > changeIndexMax) return new BadValue('its index is out of range', header)
  if (key === undefined) return new BadValue('its key is not the key of an event', header)
  const bodyEnd = Math.max(header.end, trailerStart(value))
  const body = value.subarray(header.end, bodyEnd)
  const trailer = readBlanks(value.subarray(bodyEnd))
  const opened = { key, writtenAtMs, index, body, trailer, versionOffset }
  const known = recall?.(body)
  if (known !== undefined) return { ...opened, fields: known }
  const event = readBody(body)?.event
  if (event === undefined) return new BadValue('it is not JSON that starts with metadata', header)
  const wrong = findTypeMismatch(eventType, event) ?? contradictingField(event as StoredTree, key)
  if (wrong !== undefined) return new BadValue(`${wrong} has a wrong type or value`, header)
  return { ...opened, fields: fieldsIn(event) }
}

/** What a change writes: a body alone is parsed when its fields are needed. */
export function newStateOf(written: NewState | Buffer): NewState {
  return Buffer.isBuffer(written) ? { body: written } : written
}

/**
 * The trailer of an event after a write. `current` is the event that is replaced, if there is one
 * with the same uid.
 */
export function trailerAfter(
  key: EventKey,
  current: StoredEvent | undefined,
  { body, event, workload, node }: NewState,
): Buffer {
  const mark = workload === 'by-name' ? undefined : workload
  const isMarked = mark !== undefined || node !== undefined
  if (current === undefined && !isMarked) return NO_TRAILER
  const fields = event === undefined ? fieldsOf({ key, body }) : fieldsIn(event)
  if (current === undefined || current.fields.uid !== fields.uid) {
    return encodeTrailer({ workload: mark, node }, fields)
  }
  const before = current.fields
  const known = decodeTrailer(current.trailer, before)
  const marks = isSameObject(before.regarding, fields.regarding) ? known : {}
  const isRaised = fields.occurrences > before.occurrences
  const occurrences = isRaised ? (known.occurrences ?? firstOccurrences(before)) : known.occurrences
  return encodeTrailer(
    {
      occurrences: occurrences && occurrencesAfter(occurrences, before, fields),
      workload: workload === 'by-name' ? undefined : strongest(mark, marks.workload),
      node: node ?? marks.node,
    },
    fields,
  )
}

function isSameObject(one: ObjectReference, other: ObjectReference): boolean {
  return one.kind === other.kind && one.name === other.name && one.uid === other.uid
}

/** A note does not replace what an owner reference said, for as long as the event lives. */
function strongest(
  latest: WorkloadMark | undefined,
  known: WorkloadMark | undefined,
): WorkloadMark | undefined {
  return known?.rule === 'owner' && latest?.rule !== 'owner' ? known : (latest ?? known)
}

/** Whether the value has our header, which contains the write time. */
export function isOwnValue(value: Buffer): boolean {
  return readHeader(value) !== undefined
}

/** The first field that contradicts the key or must not be stored; undefined if there is none. */
function contradictingField(event: StoredTree, key: EventKey): string | undefined {
  const { namespace, name } = key
  const { metadata } = event
  // A second `metadata` member in the JSON can set these.
  if (metadata === null) return 'metadata'
  if (metadata['name'] !== name) return 'metadata.name'
  if (metadata['namespace'] !== namespace) return 'metadata.namespace'
  if (metadata['resourceVersion'] !== undefined) return 'metadata.resourceVersion'
  if (event.kind !== undefined) return 'kind'
  return event.apiVersion === undefined ? undefined : 'apiVersion'
}

interface StoredTree {
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly kind?: unknown
  readonly apiVersion?: unknown
}

export interface ReadBody {
  readonly text: string
  readonly event: unknown
}

/** Undefined when this is not JSON that starts with the metadata. */
export function readBody(body: Buffer): ReadBody | undefined {
  if (!hasAt(body, 0, bodyStart) || !isUtf8(body)) return undefined
  const text = body.toString()
  try {
    return { text, event: JSON.parse(text) }
  } catch {
    // The caller reports it.
    return undefined
  }
}

interface Header {
  readonly writtenAtMs: number
  readonly index: number
  /** Where the body begins. */
  readonly end: number
}

function readHeader(value: Buffer): Header | undefined {
  if (!hasAt(value, 0, beforeTime)) return undefined
  const time = readDigits(value, beforeTime.length)
  if (time === undefined || !hasAt(value, time.end, beforeIndex)) return undefined
  const index = readDigits(value, time.end + beforeIndex.length)
  if (index === undefined || !hasAt(value, index.end, afterIndex)) return undefined
  const end = index.end + afterIndex.length
  return { writtenAtMs: time.number, index: index.number, end }
}

/** The event as clients get it, with its version. */
export function served(stored: Pick<StoredEvent, 'body' | 'versionOffset' | 'version'>): Buffer {
  const { body, versionOffset, version } = stored
  const member = versionMember(version, body[versionOffset] === braceClose)
  const whole = Buffer.allocUnsafe(body.length + member.length)
  body.copy(whole, 0, 0, versionOffset)
  whole.write(member, versionOffset, 'latin1')
  body.copy(whole, versionOffset + member.length, versionOffset)
  return whole
}

/** The opposite of `served`. Throws when it did not make these bytes. */
export function fromServed(
  event: Pick<StoredEvent, 'key' | 'version' | 'trailer' | 'writtenAtMs'>,
  bytes: Buffer,
): StoredEvent {
  const begin = `${bodyStart}"resourceVersion":"${formatVersion(event.version)}"`
  const end = begin.length + (bytes[begin.length] === comma ? 1 : 0)
  if (bytes.toString('latin1', 0, begin.length) !== begin) {
    throw new TypeError('the bytes of an event do not begin with its version')
  }
  const body = Buffer.concat([bytes.subarray(0, versionOffset), bytes.subarray(end)])
  return new StoredBody({ ...event, body, versionOffset })
}

/** The same for a stored body as a text. */
export function servedText(body: string, version: Version): string {
  const isAlone = body.charCodeAt(versionOffset) === braceClose
  return `${body.slice(0, versionOffset)}${versionMember(version, isAlone)}${body.slice(versionOffset)}`
}

function versionMember(version: Version, isAlone: boolean): string {
  return `"resourceVersion":"${formatVersion(version)}${isAlone ? '"' : '",'}`
}

/** A stored event whose fields are parsed on first access. */
export class StoredBody implements StoredEvent {
  readonly key: EventKey
  readonly body: Buffer
  readonly trailer: Buffer
  readonly versionOffset: number
  readonly version: Version
  readonly writtenAtMs: number
  #fields: EventFields | undefined

  constructor(event: Omit<StoredEvent, 'fields'> & { readonly fields?: EventFields }) {
    this.key = event.key
    this.body = event.body
    this.trailer = event.trailer ?? NO_TRAILER
    this.versionOffset = event.versionOffset
    this.version = event.version
    this.writtenAtMs = event.writtenAtMs
    this.#fields = event.fields
  }

  get fields(): EventFields {
    this.#fields ??= fieldsOf(this)
    return this.#fields
  }
}

/** Throws `corrupt` when the body is not JSON. */
export function fieldsOf({ key, body }: Pick<StoredEvent, 'key' | 'body'>): EventFields {
  const event = readBody(body)?.event
  if (event === undefined) throw unreadable(key, 'damaged')
  return fieldsIn(event)
}

/**
 * The uid in the bytes of a body, found without parsing it. Undefined when the metadata has none, or
 * was not written by our encoder.
 */
export function uidIn(body: Buffer): Uint8Array | undefined {
  for (let at = versionOffset; body[at] === quote; ) {
    const nameEnd = skipValue(body, at)
    const end = skipValue(body, nameEnd + 1)
    if (hasAt(body, at, uidName)) {
      const value = body.subarray(at + uidName.length, end - 1)
      return value.includes(backslash) ? undefined : value
    }
    if (body[end] !== comma) return undefined
    at = end + 1
  }
  return undefined
}

/** An event that is not written, as in a dry run; `version` is undefined if it does not exist. */
export function unwritten(
  key: EventKey,
  body: Buffer,
  version: Version | undefined,
): Pick<StoredEvent, 'key' | 'body' | 'versionOffset'> & { readonly version: Version | undefined } {
  checkBody(body)
  return { key, body, versionOffset, version }
}

/** An event with only its name, in place of a damaged event, so that it can be deleted. */
export function placeholderEvent(
  event: Pick<StoredEvent, 'key' | 'version' | 'writtenAtMs'>,
): StoredEvent {
  const { namespace, name } = event.key
  const body = Buffer.from(JSON.stringify({ metadata: { name, namespace } }))
  return new StoredBody({ ...event, body, versionOffset })
}

/** Placeholders for the damaged ones among values that are not events. */
export function* damagedIn(unreadable: Iterable<Unreadable>): Iterable<StoredEvent> {
  for (const value of unreadable) if (value.fault === 'damaged') yield placeholderEvent(value)
}

/** The same state with another version, as the result of a delete. */
export function withVersion(stored: StoredEvent, version: Version): StoredEvent {
  const { key, body, trailer, versionOffset, writtenAtMs } = stored
  return new StoredBody({ key, body, trailer, versionOffset, writtenAtMs, version })
}

/** The error for a read of a value that is not an event. */
export function unreadable(key: EventKey, fault: ValueFault): StorageError {
  const reason =
    fault === 'foreign'
      ? 'the datastore has a value under this name that this server did not write and never changes'
      : 'the value stored under this name cannot be decoded as an event; delete it to free the name'
  const message = `event ${key.namespace}/${key.name}: ${reason}`
  return new StorageError({ kind: fault === 'foreign' ? fault : 'corrupt', message, reason, key })
}

function checkBody(body: Buffer): void {
  if (!hasAt(body, 0, bodyStart)) throw new TypeError('the body does not start with metadata')
}

function hasAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let index = 0; index < wanted.length; index++) {
    if (bytes[at + index] !== wanted[index]) return false
  }
  return true
}

function readDigits(bytes: Buffer, from: number): { number: number; end: number } | undefined {
  let number = 0
  let end = from
  for (; end < bytes.length; end++) {
    const digit = (bytes[end] ?? 0) - 0x30
    if (digit < 0 || digit > 9) break
    number = number * 10 + digit
  }
  return end === from || !Number.isSafeInteger(number) ? undefined : { number, end }
}
