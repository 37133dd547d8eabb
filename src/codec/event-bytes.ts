/**
 * Taking an event's JSON out of storage: stretches of its bytes are copied, its version is put in on
 * the way, and nothing is parsed.
 */
import { skipValue } from '../storage/json-scan.ts'
import type { Version } from '../storage/resource-version.ts'

/** As much of an event as it takes to show it; a StoredEvent is one. */
export interface ShownEvent {
  /** Compact JSON without kind and apiVersion, its metadata first. */
  readonly body: Buffer
  /** Where the resourceVersion goes: right behind the opening brace of the metadata. */
  readonly versionOffset: number
  /** Undefined when there is none to show: a dry run stores nothing. */
  readonly version: Version | undefined
}

/** Bytes `from` to `to` of the body, between two texts in ASCII. */
export interface Cut {
  readonly before: string
  readonly from: number
  readonly to: number
  readonly after: string
}

const metadataStart = '{"metadata":{'.length
const braceClose = 0x7d
const digitZero = 0x30
/** The last digits of a version, and all digits before them, are each a number of 32 bits. */
const lowDigitCount = 8
const lowDigits = 10 ** lowDigitCount
const versionStart = '"resourceVersion":"'
/** Up to here a loop is quicker than a call into Node. */
const shortBytesMax = 64
/** With the longest version there is: those are safe integers. */
const versionMemberMax = '"resourceVersion":"9007199254740991",'.length

/** An event that is not, or not yet, what is stored. */
export function unstoredEvent(body: Buffer, version?: Version): ShownEvent {
  return { body, versionOffset: metadataStart, version }
}

/** Where the metadata object ends; it begins one byte before the place of the version. */
export function metadataEnd(event: ShownEvent): number {
  return skipValue(event.body, event.versionOffset - 1)
}

/** The most that `writeCut` can write. */
export function cutLengthMax(cut: Cut): number {
  return cut.before.length + cut.to - cut.from + versionMemberMax + cut.after.length
}

/** The stretch, which has the metadata in it, with the version in place. Answers where it ends. */
export function writeCut(target: Buffer, start: number, event: ShownEvent, cut: Cut): number {
  const { body, versionOffset } = event
  let at = writeAscii(target, start, cut.before)
  at = copyBytes(target, at, { body, from: cut.from, to: versionOffset })
  at = writeVersion(target, at, event)
  at = copyBytes(target, at, { body, from: versionOffset, to: cut.to })
  return writeAscii(target, at, cut.after)
}

/** The most that `writeWhole` can write. */
export function wholeLengthMax(event: ShownEvent): number {
  return event.body.length + versionMemberMax
}

/**
 * All of the event, with the version in place. Answers where it ends. The body is copied to where
 * the part after the version goes, and what comes before is written over it: one call into Node.
 */
export function writeWhole(target: Buffer, start: number, event: ShownEvent): number {
  const { body, versionOffset } = event
  const bodyStart = start + versionLength(event)
  target.set(body, bodyStart)
  writeVersion(target, copyBytes(target, start, { body, from: 0, to: versionOffset }), event)
  return bodyStart + body.length
}

/** The stretch in a buffer of its own. */
export function takeCut(event: ShownEvent, cut: Cut): Buffer {
  const room = Buffer.allocUnsafe(cutLengthMax(cut))
  return room.subarray(0, writeCut(room, 0, event, cut))
}

function writeVersion(target: Buffer, start: number, event: ShownEvent): number {
  if (event.version === undefined) return start
  let at = writeAscii(target, start, versionStart)
  at = writeNumber(target, at, event.version)
  return writeAscii(target, at, event.body[event.versionOffset] === braceClose ? '"' : '",')
}

/** What `writeVersion` will write. */
function versionLength({ version, body, versionOffset }: ShownEvent): number {
  if (version === undefined) return 0
  const end = body[versionOffset] === braceClose ? 1 : 2
  return versionStart.length + digitCount(version) + end
}

/** Texts here are so short that calling into Node would take longer than writing them. */
export function writeAscii(target: Buffer, start: number, text: string): number {
  for (let index = 0; index < text.length; index++) target[start + index] = text.charCodeAt(index)
  return start + text.length
}

/** Large numbers are slow to print, and lists are full of them. */
function writeNumber(target: Buffer, start: number, number: number): number {
  const high = Math.floor(number / lowDigits)
  if (high === 0) return writeDigits(target, start, { number, count: digitCount(number) })
  const at = writeDigits(target, start, { number: high, count: digitCount(high) })
  return writeDigits(target, at, { number: number - high * lowDigits, count: lowDigitCount })
}

function writeDigits(
  target: Buffer,
  start: number,
  { number, count }: { readonly number: number; readonly count: number },
): number {
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
