/**
 * The events in memory, stored by column in typed arrays: a slot is a row number, and no event has
 * JavaScript objects of its own. Rows are immutable; a changed event gets another row.
 */

import type { EventFields } from '../../storage/event-fields.ts'
import type { Occurrences } from '../../storage/occurrences.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventKey, EventValues, StoredEvent } from '../../storage/storage.ts'
import { fieldsOf } from '../../storage/stored-form.ts'
import { blanksOf, NO_TRAILER, occurrencesIn } from '../../storage/trailer.ts'
import { COLUMNS, type Column, columnsPerRow, firstTextColumn, writeColumns } from './columns.ts'
import { InternedTexts } from './interned-texts.ts'
import { eventKeyOf } from './order-key.ts'
import { type Found, type Needle, placeOfNote, UNSEARCHABLE } from './plain-notes.ts'
import { bytesOfText, type PlaceColumn, Slabs, type TextRef, type TextSearch } from './slabs.ts'

/** Columns grow by blocks, so that no row is copied. */
const blockRowBits = 14
const blockRows = 1 << blockRowBits
const rowMask = blockRows - 1

interface Block {
  readonly versions: Float64Array
  readonly times: Float64Array
  readonly keyPlaces: Float64Array
  readonly keyRanks: Float64Array
  readonly places: Float64Array
  readonly lengths: Uint32Array
  readonly versionOffsets: Uint32Array
  readonly lastSeen: Float64Array
  readonly firstSeen: Float64Array
  readonly occurrences: Uint32Array
  /** The place of the note in the body, for searches. */
  readonly noteOffsets: Uint32Array
  readonly noteLengths: Uint32Array
  readonly columns: Uint32Array
}

const nowhere = -1
/** Spans do not depend on the name. */
const NO_NAME = { name: '' }

export class EventTable {
  readonly #blocks: Block[] = []
  readonly #freeSlots: number[] = []
  readonly #keys: Slabs
  readonly #bodies: Slabs
  /** The texts of the columns that hold texts. */
  readonly texts: InternedTexts = new InternedTexts()
  #rows = 0

  constructor() {
    this.#keys = new Slabs(this.#placesIn('keyPlaces'))
    this.#bodies = new Slabs(this.#placesIn('places'))
  }

  /** The size of the body slabs, dead bytes included. */
  get bodyBytes(): number {
    return this.#bodies.bytesHeld
  }

  /** Copies the event into a free row. `key` is an order key; see order-key.ts. */
  add(key: Buffer, stored: StoredEvent): number {
    const slot = this.#freeSlots.pop() ?? this.#grow()
    const block = this.#block(slot)
    const row = slot & rowMask
    block.versions[row] = stored.version
    block.times[row] = stored.writtenAtMs
    block.lengths[row] = stored.body.length
    block.versionOffsets[row] = stored.versionOffset
    const { fields } = stored
    block.lastSeen[row] = fields.lastSeenMs
    block.firstSeen[row] = fields.firstSeenMs
    block.occurrences[row] = fields.occurrences
    const note = placeOfNote(stored.body, fields.note)
    block.noteOffsets[row] = note.offset
    block.noteLengths[row] = note.length
    writeColumns(block.columns, row * columnsPerRow, stored, this.texts)
    block.keyPlaces[row] = this.#keys.put(slot, key)
    const { body, trailer = NO_TRAILER } = stored
    // The trailer follows its body.
    const bytes = trailer.length === 0 ? body : Buffer.concat([body, trailer])
    block.places[row] = this.#bodies.put(slot, bytes)
    return slot
  }

  /** Frees the row; its slot will be used for another event. */
  free(slot: number): void {
    const block = this.#block(slot)
    const row = slot & rowMask
    const keyPlace = block.keyPlaces[row] ?? nowhere
    const place = block.places[row] ?? nowhere
    block.keyPlaces[row] = nowhere
    block.places[row] = nowhere
    this.#keys.free(keyPlace, this.#keys.lengthOf(keyPlace))
    this.#bodies.free(place, this.#bodies.lengthOf(place))
    for (let column = firstTextColumn; column < columnsPerRow; column++) {
      this.texts.release(block.columns[row * columnsPerRow + column] ?? 0)
    }
    this.#freeSlots.push(slot)
  }

  /** The body is a view, which stays valid after the row is freed. */
  read(slot: number): StoredEvent {
    const block = this.#block(slot)
    const row = slot & rowMask
    return new RowEvent({
      orderKey: this.#keys.refTo(block.keyPlaces[row] ?? nowhere),
      body: this.#bodies.view(block.places[row] ?? nowhere, block.lengths[row] ?? 0),
      trailer: this.#trailerOf(slot),
      versionOffset: block.versionOffsets[row] ?? 0,
      version: this.versionOf(slot),
      writtenAtMs: block.times[row] ?? 0,
      table: this,
      slot,
    })
  }

  /** Below 0 when the key of `slot` is before that of `other`, 0 when they are equal. */
  compareKeys(slot: number, other: number): number {
    return this.#keys.compare(this.keyPlaceOf(slot), this.keyPlaceOf(other))
  }

  /** Compares the times when events were last seen, then their keys. */
  compareTimes(slot: number, other: number): number {
    return this.lastSeenOf(slot) - this.lastSeenOf(other) || this.compareKeys(slot, other)
  }

  compareKey(slot: number, key: DataView): number {
    return this.#keys.compareWith(this.keyPlaceOf(slot), key)
  }

  /** A search for the place of a key among sorted ones; it takes places from `keyPlaceOf`. */
  keySearch(): TextSearch {
    return this.#keys.search()
  }

  keyPlaceOf(slot: number): number {
    return this.#block(slot).keyPlaces[slot & rowMask] ?? nowhere
  }

  /**
   * Numbers in the order of the keys of the present: a lower number is a key before the other.
   * Equal numbers mean nothing.
   */
  keyRankOf(slot: number): number {
    return this.#block(slot).keyRanks[slot & rowMask] ?? 0
  }

  setKeyRank(slot: number, rank: number): void {
    this.#block(slot).keyRanks[slot & rowMask] = rank
  }

  versionOf(slot: number): Version {
    return (this.#block(slot).versions[slot & rowMask] ?? 0) as Version
  }

  writtenAtOf(slot: number): number {
    return this.#block(slot).times[slot & rowMask] ?? 0
  }

  bytesOf(slot: number): number {
    return this.#block(slot).lengths[slot & rowMask] ?? 0
  }

  /** What the event takes in etcd; see trailer.ts. */
  storedBytesOf(slot: number): number {
    return this.bytesOf(slot) + blanksOf(this.#trailerOf(slot))
  }

  /** When the event was last seen, by the clock of its reporter. */
  lastSeenOf(slot: number): number {
    return this.#block(slot).lastSeen[slot & rowMask] ?? 0
  }

  firstSeenOf(slot: number): number {
    return this.#block(slot).firstSeen[slot & rowMask] ?? 0
  }

  occurrencesOf(slot: number): number {
    return this.#block(slot).occurrences[slot & rowMask] ?? 0
  }

  /** When the event was observed. */
  occurrencesIn(slot: number): Occurrences {
    return occurrencesIn(this.#trailerOf(slot), {
      firstSeenMs: this.firstSeenOf(slot),
      lastSeenMs: this.lastSeenOf(slot),
      occurrences: this.occurrencesOf(slot),
      regarding: NO_NAME,
    })
  }

  #trailerOf(slot: number): Buffer {
    const block = this.#block(slot)
    const row = slot & rowMask
    const place = block.places[row] ?? nowhere
    const bodyBytes = block.lengths[row] ?? 0
    const bytes = this.#bodies.lengthOf(place)
    return bytes === bodyBytes ? NO_TRAILER : this.#bodies.view(place, bytes).subarray(bodyBytes)
  }

  valueOf(slot: number, column: Column): number {
    return this.#block(slot).columns[(slot & rowMask) * columnsPerRow + column] ?? 0
  }

  /** How many bytes a search in the note reads. */
  noteBytesOf(slot: number): number {
    const block = this.#block(slot)
    const row = slot & rowMask
    return Math.min(block.noteLengths[row] ?? 0, block.lengths[row] ?? 0)
  }

  /** Looks for a text in the note. */
  findInNote(slot: number, needle: Needle): Found {
    const block = this.#block(slot)
    const row = slot & rowMask
    const length = block.noteLengths[row] ?? UNSEARCHABLE
    if (length === UNSEARCHABLE) return undefined
    const { bytes, offset } = this.#bodies.at(block.places[row] ?? nowhere)
    const from = offset + (block.noteOffsets[row] ?? 0)
    return needle.in(bytes, from, from + length)
  }

  /** Looks for a text in the whole encoded event. */
  findInBody(slot: number, needle: Needle): Found {
    const block = this.#block(slot)
    const row = slot & rowMask
    const { bytes, offset } = this.#bodies.at(block.places[row] ?? nowhere)
    return needle.inAny(bytes, offset, offset + (block.lengths[row] ?? 0))
  }

  /** Undefined when the row has been freed, or has another event now. */
  textsOf(slot: number, version: Version): EventValues | undefined {
    if (this.keyPlaceOf(slot) === nowhere || this.versionOf(slot) !== version) return undefined
    const textIn = (column: Column) => this.texts.textOf(this.valueOf(slot, column))
    return {
      type: textIn(COLUMNS.type),
      reason: textIn(COLUMNS.reason),
      kind: textIn(COLUMNS.kind),
      reportingController: textIn(COLUMNS.controller),
    }
  }

  #grow(): number {
    const slot = this.#rows++
    if (slot >>> blockRowBits === this.#blocks.length) this.#blocks.push(newBlock())
    return slot
  }

  #placesIn(column: 'keyPlaces' | 'places'): PlaceColumn {
    return {
      placeOf: (slot) => this.#block(slot)[column][slot & rowMask] ?? nowhere,
      moved: (slot, place) => {
        this.#block(slot)[column][slot & rowMask] = place
      },
    }
  }

  #block(slot: number): Block {
    const block = this.#blocks[slot >>> blockRowBits]
    if (block === undefined) throw new RangeError(`no slot ${slot}`)
    return block
  }
}

/**
 * Every list creates thousands of these, and few readers need the key or the fields: both are
 * decoded on first use.
 */
class RowEvent implements StoredEvent {
  readonly body: Buffer
  readonly trailer: Buffer
  readonly versionOffset: number
  readonly version: Version
  readonly writtenAtMs: number
  readonly #orderKey: TextRef
  #key: EventKey | undefined
  #fields: EventFields | undefined
  #values: EventValues | undefined
  readonly #table: EventTable
  readonly #slot: number

  constructor(row: Row) {
    this.body = row.body
    this.trailer = row.trailer
    this.versionOffset = row.versionOffset
    this.version = row.version
    this.writtenAtMs = row.writtenAtMs
    this.#orderKey = row.orderKey
    this.#table = row.table
    this.#slot = row.slot
  }

  get key(): EventKey {
    this.#key ??= eventKeyOf(bytesOfText(this.#orderKey))
    return this.#key
  }

  get fields(): EventFields {
    this.#fields ??= fieldsOf(this)
    return this.#fields
  }

  get values(): EventValues | undefined {
    this.#values ??= this.#table.textsOf(this.#slot, this.version)
    return this.#values
  }
}

interface Row extends Omit<StoredEvent, 'key' | 'fields' | 'values' | 'trailer'> {
  readonly trailer: Buffer
  readonly orderKey: TextRef
  readonly table: EventTable
  readonly slot: number
}

function newBlock(): Block {
  return {
    versions: new Float64Array(blockRows),
    times: new Float64Array(blockRows),
    keyPlaces: new Float64Array(blockRows).fill(nowhere),
    keyRanks: new Float64Array(blockRows),
    places: new Float64Array(blockRows).fill(nowhere),
    lengths: new Uint32Array(blockRows),
    versionOffsets: new Uint32Array(blockRows),
    lastSeen: new Float64Array(blockRows),
    firstSeen: new Float64Array(blockRows),
    occurrences: new Uint32Array(blockRows),
    noteOffsets: new Uint32Array(blockRows),
    noteLengths: new Uint32Array(blockRows),
    columns: new Uint32Array(blockRows * columnsPerRow),
  }
}
