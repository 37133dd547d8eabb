/**
 * What an event is made into before it is printed: itself, or its metadata alone. (The third shape,
 * the table, is in table-shape.ts.) Shapes speak compact JSON; answer-form.ts lays it out.
 */
import {
  type Cut,
  cutLengthMax,
  metadataEnd,
  type ShownEvent,
  takeCut,
  wholeLengthMax,
  writeAscii,
  writeCut,
  writeWhole,
} from './event-bytes.ts'
import type { MetaVersion } from './representation.ts'
import { Room } from './room.ts'

/** One of the groups in which events are served: the names their fields go by there. */
export interface EventView {
  readonly apiVersion: string
  /** The body in this group's names. Its metadata stays where it is, byte for byte. */
  body(body: Buffer): Buffer
  /** Bodies are shown as they are stored. */
  readonly isAsStored: boolean
  /** The event as this group's protobuf message. */
  message(event: ShownEvent): Buffer
}

/** What a list says of itself. */
export interface ListMeta {
  readonly resourceVersion?: string | undefined
  /** Where the next page begins; undefined on the last one. */
  readonly continue?: string | undefined
  readonly remainingItemCount?: number | undefined
}

/** The metadata of a list as JSON. */
export function listMetaText(meta: ListMeta): string {
  const { resourceVersion, continue: next, remainingItemCount } = meta
  return JSON.stringify({ resourceVersion, continue: next, remainingItemCount })
}

export interface EventShape {
  /** An event looks the same at any time. */
  readonly isLasting: boolean
  /** The member of a list in which its entries are. */
  readonly listName: 'items' | 'rows'
  /** What that member is when there are none. */
  readonly emptyList: '[]' | 'null'
  /** A list up to, and without, the value of that member, which is its last. */
  listStart(meta: ListMeta): string
  /**
   * Entries of a list, with commas in between, and a text in ASCII before them. Given a room they
   * may be in it, and are then good for as long as it says.
   */
  entries(events: readonly ShownEvent[], before: string, room?: Room): Buffer
  /** Makes objects that stand on their own, each between the two texts. */
  writer(around?: Around): EventWriter
}

/** Made once and kept: what can be prepared is. */
export type EventWriter = (event: ShownEvent) => Buffer

/** Texts in ASCII. */
export interface Around {
  readonly before: string
  readonly after: string
}

const comma = 0x2c
const nothing: Around = { before: '', after: '' }
const commaBefore: Around = { before: ',', after: '' }

export class WholeShape implements EventShape {
  readonly isLasting = true
  readonly listName = 'items'
  readonly emptyList = '[]'
  readonly #view: EventView
  readonly #kind: string

  constructor(view: EventView) {
    this.#view = view
    this.#kind = `{"kind":"Event","apiVersion":"${view.apiVersion}",`
  }

  listStart(meta: ListMeta): string {
    const { apiVersion } = this.#view
    return `{"kind":"EventList","apiVersion":"${apiVersion}","metadata":${listMetaText(meta)},"items":`
  }

  entries(events: readonly ShownEvent[], before: string, room: Room = new Room()): Buffer {
    const shown = this.#view.isAsStored ? events : events.map((event) => this.#shown(event))
    const bytesMax = shown.reduce((sum, event) => sum + wholeLengthMax(event) + 1, before.length)
    const target = room.make(bytesMax)
    let at = writeAscii(target, 0, before)
    shown.forEach((event, index) => {
      if (index > 0) target[at++] = comma
      at = writeWhole(target, at, event)
    })
    return target.subarray(0, at)
  }

  writer(around: Around = nothing): EventWriter {
    const { after } = around
    const before = around.before + this.#kind
    return (event) => {
      const shown = this.#shown(event)
      return takeCut(shown, { before, from: 1, to: shown.body.length, after })
    }
  }

  #shown(event: ShownEvent): ShownEvent {
    const { versionOffset, version } = event
    const body = this.#view.body(event.body)
    return body === event.body ? event : { body, versionOffset, version }
  }
}

export class PartialShape implements EventShape {
  readonly isLasting = true
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

  entries(events: readonly ShownEvent[], before: string, room?: Room): Buffer {
    const others = this.#cutter(commaBefore)
    const first = this.#cutter({ before, after: '' })
    return joinCuts(events, (event, index) => (index === 0 ? first : others)(event), room)
  }

  writer(around: Around = nothing): EventWriter {
    const cut = this.#cutter(around)
    return (event) => takeCut(event, cut(event))
  }

  #cutter(around: Around): (event: ShownEvent) => Cut {
    const before = around.before + this.#start
    const after = `}${around.after}`
    return (event) => ({ before, from: event.versionOffset - 1, to: metadataEnd(event), after })
  }
}

/** All in one buffer: a page of a list is many small objects. */
function joinCuts(
  events: readonly ShownEvent[],
  cutOf: (event: ShownEvent, index: number) => Cut,
  room: Room = new Room(),
): Buffer {
  const cuts = events.map(cutOf)
  const target = room.make(cuts.reduce((sum, cut) => sum + cutLengthMax(cut), 0))
  let at = 0
  cuts.forEach((cut, index) => {
    const event = events[index]
    if (event !== undefined) at = writeCut(target, at, event, cut)
  })
  return target.subarray(0, at)
}
