/**
 * An event as it lies in etcd: one header line, `{"w":<write time in ms>,"i":<index>}`, then the
 * JSON that is served, without its resourceVersion, which is not known before etcd has answered.
 * Serving is copying, with the version spliced in.
 */
import { StorageError } from './errors.ts'
import { skipValue, skipWhite } from './json-scan.ts'
import { formatVersion, type Version } from './resource-version.ts'
import type { EventFields, EventKey, StoredEvent } from './storage.ts'

/** Enough for the longest header: `{"w":`, 16 digits, `,"i":`, 3 digits, `}` and the line's end. */
const headerRoom = 32

const beforeTime: Buffer = Buffer.from('{"w":')
const beforeIndex: Buffer = Buffer.from(',"i":')
const afterIndex: Buffer = Buffer.from('}\n')
const braceOpen = 0x7b
const braceClose = 0x7d
const colon = 0x3a
const comma = 0x2c
const metadataKey: Buffer = Buffer.from('"metadata"')

/**
 * A value on its way to etcd. Its index is known only once its place in a transaction is, and
 * changes when it has to go into another one, so the header is written last, in front of the body.
 */
export interface PreparedValue {
  /** Room for the header, then the body. */
  readonly bytes: Buffer
  readonly versionOffset: number
}

/** Throws when `body` is not an object with metadata: that is a mistake in our own code. */
export function prepareValue(body: Buffer): PreparedValue {
  const versionOffset = offsetIn(body)
  const bytes = Buffer.allocUnsafe(headerRoom + body.length)
  body.copy(bytes, headerRoom)
  return { bytes, versionOffset }
}

/** The value as etcd is to keep it. A view: it is gone when the header is written again. */
export function sealValue(prepared: PreparedValue, writtenAtMs: number, index: number): Buffer {
  const header = `{"w":${writtenAtMs},"i":${index}}\n`
  const start = headerRoom - header.length
  prepared.bytes.write(header, start, 'latin1')
  return prepared.bytes.subarray(start)
}

export function bodyOf(prepared: PreparedValue): Buffer {
  return prepared.bytes.subarray(headerRoom)
}

export interface OpenedValue {
  readonly writtenAtMs: number
  readonly index: number
  readonly body: Buffer
  readonly versionOffset: number
  readonly fields: EventFields
}

/**
 * Undefined when this is not a value of ours. The whole of it is looked at, once, on its way in:
 * what is served later is served as it is.
 */
export function openValue(value: Buffer): OpenedValue | undefined {
  const header = readHeader(value)
  if (header === undefined) return undefined
  const body = value.subarray(header.end)
  const versionOffset = findVersionOffset(body)
  if (versionOffset === undefined) return undefined
  const fields = readFields(body)
  if (fields === undefined) return undefined
  const { writtenAtMs, index } = header
  return { writtenAtMs, index, body, versionOffset, fields }
}

/** Whether this server wrote the value: nothing else begins with such a header. */
export function isOwnValue(value: Buffer): boolean {
  return readHeader(value) !== undefined
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

/** The event whole: as clients get it, with its version. */
export function served(stored: Pick<StoredEvent, 'body' | 'versionOffset' | 'version'>): Buffer {
  const { body, versionOffset, version } = stored
  const end = body[versionOffset] === braceClose ? '"' : '",'
  const member = `"resourceVersion":"${formatVersion(version)}${end}`
  const whole = Buffer.allocUnsafe(body.length + member.length)
  body.copy(whole, 0, 0, versionOffset)
  whole.write(member, versionOffset, 'latin1')
  body.copy(whole, versionOffset + member.length, versionOffset)
  return whole
}

/** A stored event whose fields are looked up when somebody asks for them. */
export class StoredBody implements StoredEvent {
  readonly key: EventKey
  readonly body: Buffer
  readonly versionOffset: number
  readonly version: Version
  readonly writtenAtMs: number
  #fields: EventFields | undefined

  constructor(event: Omit<StoredEvent, 'fields'> & { readonly fields?: EventFields }) {
    this.key = event.key
    this.body = event.body
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
  return readFields(body) ?? unreadable(key)
}

/** An event as it would be stored, or would have been; `version` is undefined if it never was. */
export function unwritten(
  key: EventKey,
  body: Buffer,
  version: Version | undefined,
): Pick<StoredEvent, 'key' | 'body' | 'versionOffset'> & { readonly version: Version | undefined } {
  return { key, body, versionOffset: offsetIn(body), version }
}

/** The same state under another version: what a delete leaves behind. */
export function withVersion(stored: StoredEvent, version: Version): StoredEvent {
  const { key, body, versionOffset, writtenAtMs } = stored
  return new StoredBody({ key, body, versionOffset, writtenAtMs, version })
}

function unreadable(key: EventKey): never {
  throw new StorageError({
    kind: 'corrupt',
    message: `what is stored as event ${key.namespace}/${key.name} is not JSON`,
    key,
  })
}

/** Undefined when this is not JSON. */
function readFields(body: Buffer): EventFields | undefined {
  let event: unknown
  try {
    event = JSON.parse(body.toString())
  } catch {
    // Said by the answer.
    return undefined
  }
  const metadata = member(event, 'metadata')
  const regarding = member(event, 'regarding')
  return {
    uid: text(metadata, 'uid'),
    labels: (member(metadata, 'labels') ?? {}) as Readonly<Record<string, string>>,
    reason: text(event, 'reason'),
    type: text(event, 'type'),
    reportingController: text(event, 'reportingController'),
    sourceComponent: text(member(event, 'deprecatedSource'), 'component'),
    regarding: {
      kind: text(regarding, 'kind'),
      namespace: text(regarding, 'namespace'),
      name: text(regarding, 'name'),
      uid: text(regarding, 'uid'),
      apiVersion: text(regarding, 'apiVersion'),
      resourceVersion: text(regarding, 'resourceVersion'),
      fieldPath: text(regarding, 'fieldPath'),
    },
  }
}

function member(object: unknown, name: string): unknown {
  if (typeof object !== 'object' || object === null || !Object.hasOwn(object, name))
    return undefined
  return (object as Readonly<Record<string, unknown>>)[name] ?? undefined
}

function text(object: unknown, name: string): string {
  const value = member(object, name)
  return typeof value === 'string' ? value : ''
}

function offsetIn(body: Buffer): number {
  const offset = findVersionOffset(body)
  if (offset === undefined) throw new TypeError('the body is not an object with metadata')
  return offset
}

/** Where the first member of `metadata` begins, or its closing brace when it has none. */
function findVersionOffset(body: Buffer): number | undefined {
  let at = skipWhite(body, 0)
  if (body[at] !== braceOpen || body[body.length - 1] !== braceClose) return undefined
  do {
    const name = skipWhite(body, at + 1)
    const nameEnd = skipValue(body, name)
    at = skipWhite(body, nameEnd)
    if (body[at] !== colon) return undefined
    const value = skipWhite(body, at + 1)
    if (nameEnd - name === metadataKey.length && hasAt(body, name, metadataKey)) {
      return body[value] === braceOpen ? skipWhite(body, value + 1) : undefined
    }
    at = skipWhite(body, skipValue(body, value))
  } while (body[at] === comma)
  return undefined
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
