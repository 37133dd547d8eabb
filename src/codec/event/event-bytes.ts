/**
 * Encodes stored events as JSON without parsing them: byte ranges of the stored body are copied,
 * and the version is inserted between them.
 */
import { skipValue } from '../../lib/json-scan.ts'
import type { Version } from '../../storage/resource-version.ts'

/** The parts of an event that encoders need. A StoredEvent has them. */
export interface ShownEvent {
  /** Compact JSON that begins with the metadata, without kind and apiVersion. */
  readonly body: Buffer
  /** Where the resourceVersion is inserted, after the opening brace of the metadata. */
  readonly versionOffset: number
  /** Undefined for a dry run, which stores nothing. */
  readonly version: Version | undefined
}

/** Bytes `from` to `to` of the body, between two ASCII texts. */
export interface BodySlice {
  readonly before: string
  readonly from: number
  readonly to: number
  readonly after: string
}

const metadataStart = '{"metadata":{'.length
const braceClose = 0x7d
const digitZero = 0x30
/** A version is split here, so that its low digits and its high digits fit into 32 bits each. */
const lowDigitCount = 8
const lowDigits = 10 ** lowDigitCount
const versionStart = '"resourceVersion":"'
/** Up to this length, a loop is faster than a native call. */
const shortBytesMax = 64
/** The length with the longest version: versions are safe integers. */
const versionMemberMax = '"resourceVersion":"9007199254740991",'.length

/** An event that is not stored, or not stored yet. */
export function unstoredEvent(body: Buffer, version?: Version): ShownEvent {
  return { body, versionOffset: metadataStart, version }
}

/** Finds the end of the metadata, which begins one byte before the version offset. */
export function metadataEnd(event: ShownEvent): number {
  return skipValue(event.body, event.versionOffset - 1)
}

/** The maximum number of bytes that `writeSlice` writes. */
export function sliceLengthMax(slice: BodySlice): number {
  return slice.before.length + slice.to - slice.from + versionMemberMax + slice.after.length
}

/**
 * Writes the slice, which must contain the metadata, with the version. Returns the end position.
 */
export function writeSlice(
  target: Buffer,
  start: number,
  event: ShownEvent,
  slice: BodySlice,
): number {
  const { body, versionOffset } = event
  let at = writeAscii(target, start, slice.before)
  at = copyBytes(target, at, { body, from: slice.from, to: versionOffset })
  at = writeVersion(target, at, event)
  at = copyBytes(target, at, { body, from: versionOffset, to: slice.to })
  return writeAscii(target, at, slice.after)
}

/** The maximum number of bytes that `writeWhole` writes. */
export function wholeLengthMax(event: ShownEvent): number {
  return event.body.length + versionMemberMax
}

/**
 * Writes the whole event with the version. Returns the end position. One native call copies the
 * whole body, so that the part after the version is in its place; then the part before it and the
 * version overwrite the beginning.
 */
export function writeWhole(target: Buffer, start: number, event: ShownEvent): number {
  const { body, versionOffset } = event
  const bodyStart = start + versionLength(event)
  target.set(body, bodyStart)
  writeVersion(target, copyBytes(target, start, { body, from: 0, to: versionOffset }), event)
  return bodyStart + body.length
}

export function encodeSlice(event: ShownEvent, slice: BodySlice): Buffer {
  const target = Buffer.allocUnsafe(sliceLengthMax(slice))
  return target.subarray(0, writeSlice(target, 0, event, slice))
}

function writeVersion(target: Buffer, start: number, event: ShownEvent): number {
  if (event.version === undefined) return start
  let at = writeAscii(target, start, versionStart)
  at = writeNumber(target, at, event.version)
  return writeAscii(target, at, event.body[event.versionOffset] === braceClose ? '"' : '",')
}

/** The number of bytes that `writeVersion` writes. */
function versionLength({ version, body, versionOffset }: ShownEvent): number {
  if (version === undefined) return 0
  const end = body[versionOffset] === braceClose ? 1 : 2
  return versionStart.length + digitCount(version) + end
}

/** Uses a loop, since a native call would take longer for such short texts. */
export function writeAscii(target: Buffer, start: number, text: string): number {
  for (let index = 0; index < text.length; index++) target[start + index] = text.charCodeAt(index)
  return start + text.length
}

/** Faster than converting a large number to a string. Every list entry has one. */
function writeNumber(target: Buffer, start: number, number: number): number {
  const high = Math.floor(number / lowDigits)
  if (high === 0) return writeDigits(target, start, number, digitCount(number))
  const at = writeDigits(target, start, high, digitCount(high))
  return writeDigits(target, at, number - high * lowDigits, lowDigitCount)
}

function writeDigits(target: Buffer, start: number, number: number, count: number): number {
  let rest = number | 0
  for (let at = start + count - 1; at >= start; at--) {
    const tenth = (rest / 10) | 0
    target[at] = digitZero + rest - tenth * 10
    rest = tenth
  }
  return start + count
}

function digitCount(number: number): number {
  const high = Math.floor(number / lowDigits)
  const leading = high === 0 ? number : high
  let count = high === 0 ? 1 : lowDigitCount + 1
  for (let power = 10; power <= leading; power *= 10) count++
  return count
}

function copyBytes(
  target: Buffer,
  start: number,
  { body, from, to }: { readonly body: Buffer; readonly from: number; readonly to: number },
): number {
  if (to - from > shortBytesMax) return start + body.copy(target, start, from, to)
  for (let index = from; index < to; index++) target[start + index - from] = body[index] ?? 0
  return start + to - from
}
