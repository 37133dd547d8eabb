/**
 * The events in memory as columns of numbers: a row is a slot, and nothing about an event is an
 * object of its own but its key. Rows are filled once; a changed event gets another row.
 */
import type { Version } from '../storage/resource-version.ts'
import type { EventFields, EventKey, StoredEvent } from '../storage/storage.ts'
import { fieldsOf } from '../storage/stored-form.ts'
import { type Hashes, hashedFields } from './index-hashes.ts'
import { eventKeyOf } from './order-key.ts'
import { Slabs } from './slabs.ts'

/** Columns grow by blocks, so that growing never copies what is there. */
const blockRowBits = 14
const blockRows = 1 << blockRowBits
const rowMask = blockRows - 1
const hashesPerRow = hashedFields.length

interface Block {
  readonly versions: Float64Array
  readonly times: Float64Array
  readonly places: Float64Array
  readonly lengths: Uint32Array
  readonly versionOffsets: Uint32Array
  readonly hashes: Uint32Array
}

/** The place of a row that holds nothing. */
const nowhere = -1

export class EventTable {
  /** By slot; see order-key.ts. */
  readonly keys: string[] = []
  readonly #blocks: Block[] = []
  readonly #freeSlots: number[] = []
  readonly #slabs: Slabs

  constructor() {
    this.#slabs = new Slabs({
      placeOf: (slot) => this.#block(slot).places[slot & rowMask] ?? nowhere,
      moved: (slot, place) => {
        this.#block(slot).places[slot & rowMask] = place
      },
    })
  }

  /** What the bodies take, dead bytes included. */
  get bodyBytes(): number {
    return this.#slabs.bytesHeld
  }

  /** Copies the event into a free row. */
  add(key: string, stored: StoredEvent, hashes: Hashes): number {
    const slot = this.#freeSlots.pop() ?? this.#grow()
    this.keys[slot] = key
    const block = this.#block(slot)
    const row = slot & rowMask
    block.versions[row] = stored.version
    block.times[row] = stored.writtenAtMs
    block.lengths[row] = stored.body.length
    block.versionOffsets[row] = stored.versionOffset
    block.hashes.set(hashes, row * hashesPerRow)
    block.places[row] = this.#slabs.put(slot, stored.body)
    return slot
  }

  /** The row is free from here on, and its slot will stand for another event. */
  free(slot: number): void {
    const block = this.#block(slot)
    const row = slot & rowMask
    const place = block.places[row] ?? nowhere
    block.places[row] = nowhere
    this.keys[slot] = ''
    this.#slabs.free(place, block.lengths[row] ?? 0)
    this.#freeSlots.push(slot)
  }

  /** The body is a view that stays good whatever happens to the row. */
  read(slot: number): StoredEvent {
    const block = this.#block(slot)
    const row = slot & rowMask
    return new RowEvent({
      orderKey: this.keys[slot] ?? '',
      body: this.#slabs.view(block.places[row] ?? nowhere, block.lengths[row] ?? 0),
      versionOffset: block.versionOffsets[row] ?? 0,
      version: this.versionOf(slot),
      writtenAtMs: block.times[row] ?? 0,
    })
  }

  versionOf(slot: number): Version {
    return (this.#block(slot).versions[slot & rowMask] ?? 0) as Version
  }

  bytesOf(slot: number): number {
    return this.#block(slot).lengths[slot & rowMask] ?? 0
  }

  hashOf(slot: number, field: number): number {
    return this.#block(slot).hashes[(slot & rowMask) * hashesPerRow + field] ?? 0
  }

  #grow(): number {
    const slot = this.keys.length
    this.keys.push('')
    if (slot >>> blockRowBits === this.#blocks.length) this.#blocks.push(newBlock())
    return slot
  }

  #block(slot: number): Block {
    const block = this.#blocks[slot >>> blockRowBits]
    if (block === undefined) throw new RangeError(`no slot ${slot}`)
    return block
  }
}

/** Made by the thousand for every list, of which hardly one is asked for its key or its fields. */
class RowEvent implements StoredEvent {
  readonly body: Buffer
  readonly versionOffset: number
  readonly version: Version
  readonly writtenAtMs: number
  readonly #orderKey: string
  #key: EventKey | undefined
  #fields: EventFields | undefined

  constructor(row: Omit<StoredEvent, 'key' | 'fields'> & { readonly orderKey: string }) {
    this.body = row.body
    this.versionOffset = row.versionOffset
    this.version = row.version
    this.writtenAtMs = row.writtenAtMs
    this.#orderKey = row.orderKey
  }

  get key(): EventKey {
    this.#key ??= eventKeyOf(this.#orderKey)
    return this.#key
  }

  get fields(): EventFields {
    this.#fields ??= fieldsOf(this)
    return this.#fields
  }
}

function newBlock(): Block {
  return {
    versions: new Float64Array(blockRows),
    times: new Float64Array(blockRows),
    places: new Float64Array(blockRows).fill(nowhere),
    lengths: new Uint32Array(blockRows),
    versionOffsets: new Uint32Array(blockRows),
    hashes: new Uint32Array(blockRows * hashesPerRow),
  }
}
