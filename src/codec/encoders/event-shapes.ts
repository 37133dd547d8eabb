/**
 * The shapes in which an event is encoded: the whole event, or its metadata only. (The third shape,
 * the table, is in table-shape.ts.) Shapes produce compact JSON; response-encoder.ts formats it.
 */

import type { JsonObject } from '../../lib/json.ts'
import {
  type BodySlice,
  encodeSlice,
  metadataEnd,
  type ShownEvent,
  sliceLengthMax,
  wholeLengthMax,
  writeAscii,
  writeSlice,
  writeWhole,
} from '../event/event-bytes.ts'
import type { MetaVersion } from '../representation.ts'
import { ScratchBuffer } from './scratch-buffer.ts'
import type { ColumnDefinition, TableCell } from './table.ts'

/**
 * How one API group presents events: the field names that it uses. Other objects that are read like
 * events have a view as well, with their own kind and columns.
 */
export interface EventView {
  readonly kind: string
  readonly apiVersion: string
  readonly columns: readonly ColumnDefinition[]
  /** One cell for each column. */
  cells(object: JsonObject, nowMs: number): readonly TableCell[]
  /** The members besides metadata that an object always has, as JSON text after the metadata. */
  readonly emptyMembers: string
  /** The metadata of a body. */
  metadata(body: Buffer): JsonObject
  /** The body with this group's field names. Its metadata keeps its position, byte for byte. */
  body(body: Buffer): Buffer
  /** Stored bodies are served unchanged. */
  readonly isAsStored: boolean
  /** The event as this group's protobuf message. */
  message(event: ShownEvent): Buffer
}

/** The metadata of a list. */
export interface ListMeta {
  readonly resourceVersion?: string | undefined
  /** Where the next page begins; undefined on the last one. */
  readonly continue?: string | undefined
  readonly remainingItemCount?: number | undefined
  /** Set when the list is one shard of the collection. */
  readonly shardInfo?: { readonly selector: string } | undefined
}

export function listMetaText(meta: ListMeta): string {
  const { resourceVersion, continue: next, remainingItemCount, shardInfo } = meta
  return JSON.stringify({ resourceVersion, continue: next, remainingItemCount, shardInfo })
}

export interface EventShape {
  /** The output does not depend on the time of encoding, so that it can be cached. */
  readonly isCacheable: boolean
  /** The member of a list that holds its entries. */
  readonly listName: 'items' | 'rows'
  /** The value of that member when there are no entries. */
  readonly emptyList: '[]' | 'null'
  /** A list up to the value of that member, which is the last one. */
  listStart(meta: ListMeta): string
  /**
   * Entries of a list, separated by commas, after an ASCII prefix. With a scratch buffer the result
   * may be a view of it, which is valid until the next write to that buffer.
   */
  entries(events: readonly ShownEvent[], before: string, scratch?: ScratchBuffer): Buffer
  /** Writes single objects, each between the two texts. */
  writer(affixes?: Affixes): EventWriter
}

/** Created once and reused: its constant parts are prepared. */
export type EventWriter = (event: ShownEvent) => Buffer

/** ASCII texts. */
export interface Affixes {
  readonly before: string
  readonly after: string
}

const comma = 0x2c
const noAffixes: Affixes = { before: '', after: '' }
const commaBefore: Affixes = { before: ',', after: '' }

export class WholeShape implements EventShape {
  readonly isCacheable = true
  readonly listName = 'items'
  readonly emptyList = '[]'
  readonly #view: EventView
  readonly #kind: string

  constructor(view: EventView) {
    this.#view = view
    this.#kind = `{"kind":"${view.kind}","apiVersion":"${view.apiVersion}",`
  }

  listStart(meta: ListMeta): string {
    const { kind, apiVersion } = this.#view
    return `{"kind":"${kind}List","apiVersion":"${apiVersion}","metadata":${listMetaText(meta)},"items":`
  }

  entries(
    events: readonly ShownEvent[],
    before: string,
    scratch: ScratchBuffer = new ScratchBuffer(),
  ): Buffer {
    const shown = this.#view.isAsStored ? events : events.map((event) => this.#shown(event))
    const bytesMax = shown.reduce((sum, event) => sum + wholeLengthMax(event) + 1, before.length)
    const target = scratch.reserve(bytesMax)
    let at = writeAscii(target, 0, before)
    shown.forEach((event, index) => {
      if (index > 0) target[at++] = comma
      at = writeWhole(target, at, event)
    })
    return target.subarray(0, at)
  }

  writer(affixes: Affixes = noAffixes): EventWriter {
    const { after } = affixes
    const before = affixes.before + this.#kind
    return (event) => {
      const shown = this.#shown(event)
      return encodeSlice(shown, { before, from: 1, to: shown.body.length, after })
    }
  }

  #shown(event: ShownEvent): ShownEvent {
    const { versionOffset, version } = event
    const body = this.#view.body(event.body)
    return body === event.body ? event : { body, versionOffset, version }
  }
}

export class PartialShape implements EventShape {
  readonly isCacheable = true
  readonly listName = 'items'
  readonly emptyList = 'null'
  readonly #apiVersion: string
  readonly #start: string

  constructor(metaVersion: MetaVersion) {
    this.#apiVersion = `meta.k8s.io/${metaVersion}`
    this.#start = `{"kind":"PartialObjectMetadata","apiVersion":"${this.#apiVersion}","metadata":`
  }

  listStart(meta: ListMeta): string {
    return `{"kind":"PartialObjectMetadataList","apiVersion":"${this.#apiVersion}","metadata":${listMetaText(meta)},"items":`
  }

  entries(events: readonly ShownEvent[], before: string, scratch?: ScratchBuffer): Buffer {
    const others = this.#slicer(commaBefore)
    const first = this.#slicer({ before, after: '' })
    return joinSlices(events, (event, index) => (index === 0 ? first : others)(event), scratch)
  }

  writer(affixes: Affixes = noAffixes): EventWriter {
    const slice = this.#slicer(affixes)
    return (event) => encodeSlice(event, slice(event))
  }

  #slicer(affixes: Affixes): (event: ShownEvent) => BodySlice {
    const before = affixes.before + this.#start
    const after = `}${affixes.after}`
    return (event) => ({ before, from: event.versionOffset - 1, to: metadataEnd(event), after })
  }
}

/** Writes into one buffer, since a page of a list is many small objects. */
function joinSlices(
  events: readonly ShownEvent[],
  sliceOf: (event: ShownEvent, index: number) => BodySlice,
  scratch: ScratchBuffer = new ScratchBuffer(),
): Buffer {
  const slices = events.map(sliceOf)
  const target = scratch.reserve(slices.reduce((sum, slice) => sum + sliceLengthMax(slice), 0))
  let at = 0
  slices.forEach((slice, index) => {
    const event = events[index]
    if (event !== undefined) at = writeSlice(target, at, event, slice)
  })
  return target.subarray(0, at)
}
