/** Decodes responses of an origin: pages of a list, changes of a watch, and errors. */

import type { Event } from '../api/event.ts'
import { coreGroup } from '../api/event-groups.ts'
import { decodeEventBody, decodeEventTree } from '../codec/event/event-json.ts'
import { decodeBareEvent } from '../codec/event/event-protobuf.ts'
import { parseJson } from '../codec/json/json-text.ts'
import { unwrapEnvelope } from '../codec/struct/kube-protobuf.ts'
import { listMetaType, statusType } from '../codec/struct/meta-types.ts'
import { decodeStruct } from '../codec/struct/protobuf-struct.ts'
import { isObject, type JsonObject, memberOf, textOf } from '../lib/json.ts'
import { skipValue, skipWhite } from '../lib/json-scan.ts'
import { Reader } from '../lib/protobuf.ts'
import { yieldToEventLoop } from '../lib/yield.ts'
import { isResourceVersion, type OriginEvent } from '../registry/origin-version.ts'
import type { ChangeOf, OriginChange, PageOf } from './origin.ts'

/** Twice the largest limit requested: an origin that ignores it must not fill the memory. */
const itemsMax = 1_000

/** Decoding this much takes a few milliseconds; then other work gets a turn. */
const itemsPerTurn = 64
const bytesPerTurn = 128 * 1024
const metaValuesMax = 1000
const statusBytesMax = 64 * 1024

/** The fields of a Status that a mirror uses. */
export interface OriginStatus {
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly retryAfterMs: number | undefined
}

export type WireForm = 'json' | 'protobuf'

export function wireFormOf(contentType: string | undefined): WireForm {
  return contentType?.startsWith('application/vnd.kubernetes.protobuf') === true
    ? 'protobuf'
    : 'json'
}

/** What a resource of an origin consists of. */
export interface ItemDecoder<Item> {
  /** Undefined for an item that cannot be decoded. */
  readonly item: (bytes: Buffer, form: WireForm) => Item | undefined
  /** A frame of a watch. */
  readonly change: (frame: Buffer, form: WireForm) => ChangeOf<Item> | OriginFailure
}

/** An ERROR frame of a watch is a Status. */
export interface OriginFailure {
  readonly type: 'error'
  readonly status: OriginStatus
}

/** Throws an Error when this is not a list. Items that cannot be decoded are only counted. */
export async function decodePage<Item>(
  body: Buffer,
  form: WireForm,
  decode: ItemDecoder<Item>['item'],
): Promise<PageOf<Item>> {
  const parts = form === 'json' ? jsonParts(body) : protobufParts(body)
  const items: Item[] = []
  let meta: JsonObject = {}
  let unreadable = 0
  let turnItems = 0
  let turnBytes = 0
  for (const part of parts) {
    if ('meta' in part) {
      meta = part.meta
      continue
    }
    const item = decode(part.item, form)
    if (item === undefined) unreadable++
    else items.push(item)
    if (items.length + unreadable > itemsMax) throw new Error(`the page has over ${itemsMax} items`)
    turnItems++
    turnBytes += part.item.length
    if (turnItems < itemsPerTurn && turnBytes < bytesPerTurn) continue
    turnItems = 0
    turnBytes = 0
    await yieldToEventLoop()
  }
  const resourceVersion = textOf(meta, 'resourceVersion')
  if (!isResourceVersion(resourceVersion)) {
    throw new Error('the list has no resourceVersion that can be compared')
  }
  const continueToken = textOf(meta, 'continue')
  return {
    items,
    resourceVersion,
    continueToken: continueToken === '' ? undefined : continueToken,
    unreadable,
  }
}

/** Events of core/v1. */
export const eventDecoder: ItemDecoder<OriginEvent> = { item: decodedItem, change: decodedChange }

function decodedItem(bytes: Buffer, form: WireForm): OriginEvent | undefined {
  try {
    const event =
      form === 'json' ? decodeEventBody(bytes, coreGroup).event : decodeBareEvent(bytes, coreGroup)
    return originEvent(event, bytes.length)
  } catch {
    // The caller counts it: an event that this version cannot represent.
    return undefined
  }
}

function originEvent(event: Event, bytes: number): OriginEvent {
  return { event, resourceVersion: event.metadata.resourceVersion ?? '', bytes }
}

type ListPart = { readonly meta: JsonObject } | { readonly item: Buffer }

function* protobufParts(body: Buffer): Generator<ListPart, void, undefined> {
  const reader = new Reader(unwrapEnvelope(body).raw)
  while (reader.next()) {
    if (reader.wireType !== 2) reader.skip()
    else if (reader.field === 1) {
      yield { meta: decodeStruct(listMetaType, reader.bytes(), metaValuesMax) }
    } else if (reader.field === 2) yield { item: reader.bytes() }
    else reader.skip()
  }
}

const quote = 0x22
const colon = 0x3a
const comma = 0x2c
const bracketOpen = 0x5b
const bracketClose = 0x5d
const braceOpen = 0x7b

/** Finds the items without parsing the whole list, so that each can be decoded separately. */
function* jsonParts(body: Buffer): Generator<ListPart, void, undefined> {
  let at = expect(body, skipWhite(body, 0), braceOpen)
  for (;;) {
    at = skipWhite(body, at)
    if (body[at] !== quote) return
    const nameEnd = skipValue(body, at)
    const name = body.toString('latin1', at + 1, nameEnd - 1)
    at = skipWhite(body, expect(body, skipWhite(body, nameEnd), colon))
    if (name === 'items' && body[at] === bracketOpen) at = yield* jsonItems(body, at)
    else {
      const end = skipValue(body, at)
      if (name === 'metadata') yield { meta: objectIn(body.subarray(at, end)) }
      at = end
    }
    at = skipWhite(body, at)
    if (body[at] !== comma) return
    at++
  }
}

/** Returns the offset after the array. */
function* jsonItems(body: Buffer, from: number): Generator<ListPart, number, undefined> {
  let at = skipWhite(body, from + 1)
  while (body[at] !== bracketClose) {
    const end = skipValue(body, at)
    if (end === at) throw new Error('the list is not JSON')
    yield { item: body.subarray(at, end) }
    at = skipWhite(body, end)
    if (body[at] === comma) at = skipWhite(body, at + 1)
    else if (body[at] !== bracketClose) throw new Error('the list is not JSON')
  }
  return at + 1
}

function expect(body: Buffer, at: number, byte: number): number {
  if (body[at] !== byte) throw new Error('the list is not JSON')
  return at + 1
}

function objectIn(bytes: Buffer): JsonObject {
  const { value } = parseJson(bytes.toString(), metaValuesMax)
  return isObject(value) ? value : {}
}

function decodedChange(frame: Buffer, form: WireForm): OriginChange | OriginFailure {
  try {
    return form === 'json' ? jsonChange(frame) : protobufChange(frame)
  } catch {
    return { type: 'unreadable' }
  }
}

function jsonChange(frame: Buffer): OriginChange | OriginFailure {
  const { value } = parseJson(frame.toString())
  const object = isObject(value) ? memberOf(value, 'object') : undefined
  if (!isObject(value) || !isObject(object)) return { type: 'unreadable' }
  const type = textOf(value, 'type')
  if (type === 'ERROR') return { type: 'error', status: statusIn(object) }
  return changeOf(type, originEvent(decodeEventTree(object, coreGroup).event, frame.length))
}

function protobufChange(frame: Buffer): OriginChange | OriginFailure {
  let type = ''
  let object: Buffer = Buffer.alloc(0)
  const reader = new Reader(frame)
  while (reader.next()) {
    if (reader.wireType !== 2) reader.skip()
    else if (reader.field === 1) type = reader.bytes().toString()
    else if (reader.field === 2) object = rawIn(reader.bytes())
    else reader.skip()
  }
  const { raw } = unwrapEnvelope(object)
  if (type === 'ERROR') {
    return { type: 'error', status: statusIn(decodeStruct(statusType, raw, metaValuesMax)) }
  }
  return changeOf(type, originEvent(decodeBareEvent(raw, coreGroup), frame.length))
}

/** The bytes of a RawExtension. */
function rawIn(extension: Buffer): Buffer {
  const reader = new Reader(extension)
  let raw: Buffer = Buffer.alloc(0)
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === 2) raw = reader.bytes()
    else reader.skip()
  }
  return raw
}

/** The change of this type, as the API names it. */
export function changeOf<Item extends { readonly resourceVersion: string }>(
  type: string,
  item: Item,
): ChangeOf<Item> {
  if (type === 'ADDED' || type === 'MODIFIED') return { type: 'put', ...item }
  if (type === 'DELETED') return { type: 'delete', ...item }
  if (type === 'BOOKMARK') return { type: 'bookmark', resourceVersion: item.resourceVersion }
  return { type: 'unreadable' }
}

/** Decodes the body of an error response; undefined when it is not a Status. */
export function decodeStatus(body: Buffer, form: WireForm): OriginStatus | undefined {
  if (body.length > statusBytesMax) return undefined
  try {
    if (form === 'protobuf') {
      return statusIn(decodeStruct(statusType, unwrapEnvelope(body).raw, metaValuesMax))
    }
    return statusIn(objectIn(body))
  } catch {
    // A proxy in between may respond with anything.
    return undefined
  }
}

export function statusIn(status: JsonObject): OriginStatus {
  const details = memberOf(status, 'details')
  const retryAfter = isObject(details) ? memberOf(details, 'retryAfterSeconds') : undefined
  const code = memberOf(status, 'code')
  return {
    code: typeof code === 'number' ? code : 0,
    reason: textOf(status, 'reason'),
    message: textOf(status, 'message'),
    retryAfterMs: typeof retryAfter === 'number' && retryAfter > 0 ? retryAfter * 1000 : undefined,
  }
}
