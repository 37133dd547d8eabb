/**
 * Versions of mirrored events at their origin. The version of a stored event is in its
 * annotations, so it is read and written together with the event.
 */
import {
  originEpochAnnotation as epochName,
  truncatedAnnotation as truncatedName,
  originVersionAnnotation as versionName,
} from '../api/annotations.ts'
import type { Event } from '../api/event.ts'
import { StatusError } from '../api/status.ts'
import { encodeEvent } from '../codec/event/event-json.ts'
import { quotedJson } from '../codec/json/json-write.ts'
import type { StoredEvent } from '../storage/storage.ts'

/**
 * A version of an event at its origin. The epoch counts how often the origin was found to have
 * started over from an older state, after which its resourceVersions are used a second time.
 */
export interface OriginVersion {
  readonly epoch: number
  readonly resourceVersion: string
}

/** A state of an event at its origin. */
export interface OriginEvent {
  readonly event: Event
  readonly resourceVersion: string
  /** Size on the wire. */
  readonly bytes: number
}

/** The origin's uid and version of a stored event. */
export interface Held {
  readonly uid: string
  /** Undefined for an event that was not written by a mirror. */
  readonly version: OriginVersion | undefined
}

/**
 * The stored event is of a later epoch than the writer's: the record of the epoch was lost. Nothing
 * was written.
 */
export class LaterEpoch extends Error {
  override readonly name = 'LaterEpoch'
  readonly epoch: number

  constructor(epoch: number) {
    super(`events of epoch ${epoch} are stored`)
    this.epoch = epoch
  }
}

/** Whether the text is a comparable resourceVersion: a positive decimal number. */
export function isResourceVersion(text: string): boolean {
  return /^[1-9][0-9]{0,38}$/.test(text)
}

/** Negative when `one` is older, 0 when both are equal. Compares numbers of any length. */
export function compareResourceVersions(one: string, other: string): number {
  if (one.length !== other.length) return one.length - other.length
  if (one === other) return 0
  return one < other ? -1 : 1
}

export function compareOriginVersions(one: OriginVersion, other: OriginVersion): number {
  if (one.epoch !== other.epoch) return one.epoch - other.epoch
  return compareResourceVersions(one.resourceVersion, other.resourceVersion)
}

/**
 * The body to store: the origin's object with its version in annotations. They replace those of an
 * origin that is a mirror itself.
 */
export function mirroredBody(event: Event, { epoch, resourceVersion }: OriginVersion): Buffer {
  const {
    resourceVersion: _resourceVersion,
    selfLink: _selfLink,
    annotations,
    ...metadata
  } = event.metadata
  const { [versionName]: _version, [epochName]: _epoch, ...others } = annotations ?? {}
  const marks = {
    [versionName]: resourceVersion,
    ...(epoch === 0 ? {} : { [epochName]: String(epoch) }),
  }
  return encodeEvent({ ...event, metadata: { ...metadata, annotations: { ...others, ...marks } } })
}

export interface MirroredBody {
  readonly body: Buffer
  readonly isTruncated: boolean
}

/**
 * The body to store, within `bytesMax` if possible: a larger event loses its annotations and field
 * owners, and then the end of its note. An annotation records the original size.
 */
export function boundedBody(event: Event, version: OriginVersion, bytesMax: number): MirroredBody {
  const whole = bodyIfEncodable(event, version)
  if (whole !== undefined && whole.length <= bytesMax) return { body: whole, isTruncated: false }
  const { annotations: _annotations, managedFields: _managedFields, ...metadata } = event.metadata
  const bytes = whole?.length ?? Buffer.byteLength(JSON.stringify(event))
  const annotations = { [truncatedName]: String(bytes) }
  const bare = { ...event, metadata: { ...metadata, annotations } }
  const { note = '' } = event
  if (note === '') return { body: mirroredBody(bare, version), isTruncated: true }
  const marked = mirroredBody({ ...bare, note: CUT_MARK }, version)
  const noteBytesMax = bytesMax - marked.length
  const isWhole = lengthWithin(note, noteBytesMax + Buffer.byteLength(CUT_MARK)) === note.length
  const cut = isWhole ? note : `${note.slice(0, lengthWithin(note, noteBytesMax))}${CUT_MARK}`
  return { body: mirroredBody({ ...bare, note: cut }, version), isTruncated: true }
}

/** Ends a truncated note. */
const CUT_MARK = '…'

/** Undefined when a string is too long to be encoded. */
function bodyIfEncodable(event: Event, version: OriginVersion): Buffer | undefined {
  try {
    return mirroredBody(event, version)
  } catch (error) {
    if (error instanceof StatusError && error.code === 413) return undefined
    throw error
  }
}

const STEP_UNITS = 4096

/** How many UTF-16 units of the text fit into `bytesMax` of JSON. Splits no character. */
function lengthWithin(text: string, bytesMax: number): number {
  let end = 0
  let left = bytesMax
  for (let step = STEP_UNITS; step >= 1; step /= 8) {
    while (end < text.length) {
      const part = text.slice(end, end + step)
      const bytes = Buffer.byteLength(quotedJson(part)) - '""'.length
      if (bytes > left) break
      left -= bytes
      end += part.length
    }
  }
  return (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end
}

export function heldBy({ body }: Pick<StoredEvent, 'body'>): Held {
  const { metadata } = JSON.parse(body.toString()) as {
    readonly metadata: {
      readonly uid?: string
      readonly annotations?: Readonly<Record<string, string>>
    }
  }
  const { uid = '', annotations = {} } = metadata
  const resourceVersion = textIn(annotations, versionName)
  const epoch = textIn(annotations, epochName) ?? '0'
  const isVersion = resourceVersion !== undefined && isResourceVersion(resourceVersion)
  if (!isVersion || !/^[0-9]{1,9}$/.test(epoch)) return { uid, version: undefined }
  return { uid, version: { epoch: Number(epoch), resourceVersion } }
}

function textIn(annotations: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(annotations, name) ? annotations[name] : undefined
}

/**
 * When the event last happened, by its own timestamps, in milliseconds since 1970; undefined without
 * any.
 */
export function lastActivityMs(event: Event): number | undefined {
  const { deprecatedLastTimestamp, eventTime, series } = event
  return newest([
    ...serverTimes(event),
    deprecatedLastTimestamp,
    eventTime,
    series?.lastObservedTime,
  ])
}

/**
 * When the event was last written at its origin, by the times that the origin set: those of clients
 * may be ahead. Too early when the origin records no managed fields.
 */
export function lastWriteMs(event: Event): number | undefined {
  return newest(serverTimes(event))
}

function serverTimes({ metadata }: Event): readonly (string | undefined)[] {
  return [metadata.creationTimestamp, ...(metadata.managedFields ?? []).map(({ time }) => time)]
}

function newest(times: readonly (string | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined).map((time) => Date.parse(time))
  return known.length === 0 ? undefined : Math.max(...known)
}
