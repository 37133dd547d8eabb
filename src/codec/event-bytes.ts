/**
 * Taking an event's JSON out of storage: stretches of its bytes are copied, its version is put in on
 * the way, and nothing is parsed.
 */
import { skipValue } from '../storage/json-scan.ts'
import { formatVersion, type Version } from '../storage/resource-version.ts'

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

/** The stretch in a buffer of its own. */
export function takeCut(event: ShownEvent, cut: Cut): Buffer {
  const room = Buffer.allocUnsafe(cutLengthMax(cut))
  return room.subarray(0, writeCut(room, 0, event, cut))
}

function writeVersion(target: Buffer, start: number, event: ShownEvent): number {
  if (event.version === undefined) return start
  let at = writeAscii(target, start, versionStart)
  at = writeAscii(target, at, formatVersion(event.version))
  return writeAscii(target, at, event.body[event.versionOffset] === braceClose ? '"' : '",')
}

/** Texts here are so short that calling into Node would take longer than writing them. */
function writeAscii(target: Buffer, start: number, text: string): number {
  for (let index = 0; index < text.length; index++) target[start + index] = text.charCodeAt(index)
  return start + text.length
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
