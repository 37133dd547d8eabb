/**
 * Slab allocator for keys or bodies of events outside the JavaScript heap: a million of them are a
 * few thousand buffers, so the garbage collector has little to walk. Keys and bodies have separate
 * slabs: keys are compared all the time, and close together they touch much less memory.
 *
 * Bytes are appended and never overwritten, so a view stays valid for as long as it is referenced.
 * When a twelfth of all slabs is dead, the live texts of the emptiest slab are moved to the current
 * one, and the garbage collector frees it after its last view. Events mostly expire in the order they
 * were created, so most slabs are nearly empty by then.
 */

const slabBytes = 256 * 1024
/** A longer text gets a slab of its own size: at most an eighth of a full slab is left unused. */
const sharedBytesMax = slabBytes / 8
/** Each text has its slot and length in front, for the walk over a slab when it is evacuated. */
const headerBytes = 8
/**
 * The part of all slabs that may be dead, at least two slabs. If events die in no order at all, eleven
 * bytes are copied for each one freed, which takes a microsecond or two for each event.
 */
const deadPart = 1 / 12
const deadBytesMin = 2 * slabBytes

interface Slab {
  readonly id: number
  readonly bytes: Buffer
  readonly words: DataView
  used: number
  alive: number
}

/** Where each slot's text is; the owner of the slabs stores it. */
export interface PlaceColumn {
  placeOf(slot: number): number
  moved(slot: number, place: number): void
}

/** A reference to a text, which stays valid after the text is freed or moved. */
export interface TextRef {
  readonly words: DataView
  readonly offset: number
}

export function bytesOfText({ words, offset }: TextRef): Buffer {
  return Buffer.from(words.buffer as ArrayBuffer, offset, lengthAt(words, offset))
}

export class Slabs {
  readonly #places: PlaceColumn
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeIds: number[] = []
  #current: Slab
  #bytesHeld = 0
  /** Dead bytes in full slabs. */
  #bytesDead = 0

  constructor(places: PlaceColumn) {
    this.#places = places
    this.#current = this.#open(slabBytes)
  }

  /** The size of all slabs, dead bytes included. */
  get bytesHeld(): number {
    return this.#bytesHeld
  }

  /** Copies the text and returns its place. */
  put(slot: number, text: Buffer): number {
    const need = headerBytes + text.length
    if (need > sharedBytesMax) return append(this.#open(need), slot, text)
    while (this.#current.used + need > slabBytes) this.#seal()
    return append(this.#current, slot, text)
  }

  /** Counts the texts that died while the slab was being filled: `free` skips the current slab. */
  #seal(): void {
    const sealed = this.#current
    this.#current = this.#open(slabBytes)
    this.#bytesDead += sealed.used - sealed.alive
    this.#reclaim(sealed)
  }

  view(place: number, length: number): Buffer {
    const offset = offsetOf(place)
    return this.#at(place).bytes.subarray(offset, offset + length)
  }

  /** The bytes that the text at this place is in, and where. */
  at(place: number): { readonly bytes: Uint8Array; readonly offset: number } {
    return { bytes: this.#at(place).bytes, offset: offsetOf(place) }
  }

  lengthOf(place: number): number {
    return lengthAt(this.#at(place).words, offsetOf(place))
  }

  /** A reference for reading the text later, even after it is freed or moved. */
  refTo(place: number): TextRef {
    return { words: this.#at(place).words, offset: offsetOf(place) }
  }

  /** Compares bytes: below 0 when the text is before the other, 0 when they are equal. */
  compare(place: number, other: number): number {
    const { words } = this.#at(other)
    const start = offsetOf(other)
    return this.#compare(place, words, start, lengthAt(words, start))
  }

  /** The same with a text outside the slabs. */
  compareWith(place: number, text: DataView): number {
    return this.#compare(place, text, 0, text.byteLength)
  }

  /** A search that compares many texts with one of them. */
  search(): TextSearch {
    return new TextSearch(this.#slabs)
  }

  /** `placeOf` must no longer return this place for the slot. */
  free(place: number, length: number): void {
    const slab = this.#at(place)
    slab.alive -= headerBytes + length
    if (slab === this.#current) return
    this.#bytesDead += headerBytes + length
    this.#reclaim(slab)
  }

  /** Texts of this slab have died. */
  #reclaim(slab: Slab): void {
    if (slab.alive === 0) this.#evacuate(slab)
    // Checked after an evacuation as well, since the dead part is measured against fewer slabs then.
    if (this.#bytesDead <= Math.max(deadBytesMin, this.#bytesHeld * deadPart)) return
    const emptiest = this.#emptiest()
    if (emptiest !== undefined) this.#evacuate(emptiest)
  }

  /** The full slab with the most dead bytes. */
  #emptiest(): Slab | undefined {
    let emptiest: Slab | undefined
    let most = 0
    for (const slab of this.#slabs) {
      if (slab === undefined || slab === this.#current) continue
      const dead = slab.used - slab.alive
      if (dead <= most) continue
      emptiest = slab
      most = dead
    }
    return emptiest
  }

  /** Written in JavaScript, four bytes at a time: a native call costs more than the whole loop. */
  #compare(place: number, other: DataView, otherStart: number, otherLength: number): number {
    const { words } = this.#at(place)
    const start = offsetOf(place)
    const length = lengthAt(words, start)
    const common = Math.min(length, otherLength)
    let at = 0
    for (; at + 4 <= common; at += 4) {
      const difference = words.getUint32(start + at) - other.getUint32(otherStart + at)
      if (difference !== 0) return difference
    }
    for (; at < common; at++) {
      const difference = words.getUint8(start + at) - other.getUint8(otherStart + at)
      if (difference !== 0) return difference
    }
    return length - otherLength
  }

  #evacuate(slab: Slab): void {
    this.#slabs[slab.id] = undefined
    this.#bytesHeld -= slab.bytes.length
    this.#bytesDead -= slab.used - slab.alive
    const { id, bytes, words, used } = slab
    if (slab.alive > 0) {
      for (let at = 0; at < used; ) {
        const slot = words.getUint32(at)
        const start = at + headerBytes
        at = start + lengthAt(words, start)
        if (this.#places.placeOf(slot) !== id * slabBytes + start) continue
        this.#places.moved(slot, this.put(slot, bytes.subarray(start, at)))
      }
    }
    this.#freeIds.push(id)
  }

  #open(size: number): Slab {
    const id = this.#freeIds.pop() ?? this.#slabs.length
    const bytes = Buffer.allocUnsafeSlow(size)
    const slab = { id, bytes, words: new DataView(bytes.buffer), used: 0, alive: 0 }
    this.#slabs[id] = slab
    this.#bytesHeld += size
    return slab
  }

  #at(place: number): Slab {
    return slabAt(this.#slabs, place)
  }
}

/**
 * Finds the place of a text among sorted ones. What the nearest texts on both sides have in common
 * with it, all texts between them have, too, and it is not compared again: most keys begin with the
 * same cluster, namespace and name.
 */
export class TextSearch {
  readonly #slabs: readonly (Slab | undefined)[]
  #words: DataView | undefined
  #start = 0
  #length = 0
  /** How many bytes the nearest texts before and after it have in common with it. */
  #commonBefore = 0
  #commonAfter = 0

  constructor(slabs: readonly (Slab | undefined)[]) {
    this.#slabs = slabs
  }

  /** Begins a search for the place of this text. */
  seek(place: number): void {
    const { words } = slabAt(this.#slabs, place)
    this.#words = words
    this.#start = offsetOf(place)
    this.#length = lengthAt(words, this.#start)
    this.#commonBefore = 0
    this.#commonAfter = 0
  }

  /**
   * Below 0 when the text at this place is before the sought one. It must not be further away than
   * the nearest ones that were compared so far.
   */
  compare(place: number): number {
    const sought = this.#words
    if (sought === undefined) throw new Error('nothing is sought')
    const { words } = slabAt(this.#slabs, place)
    const start = offsetOf(place)
    const soughtStart = this.#start
    const length = lengthAt(words, start)
    const common = Math.min(length, this.#length)
    let at = Math.min(this.#commonBefore, this.#commonAfter)
    let difference = 0
    for (; at + 4 <= common; at += 4) {
      difference = words.getUint32(start + at) - sought.getUint32(soughtStart + at)
      if (difference !== 0) return this.#passed(difference, at)
    }
    for (let rest = at; rest < common; rest++) {
      difference = words.getUint8(start + rest) - sought.getUint8(soughtStart + rest)
      if (difference !== 0) return this.#passed(difference, at)
    }
    return this.#passed(length - this.#length, at)
  }

  #passed(difference: number, common: number): number {
    if (difference < 0) this.#commonBefore = common
    else if (difference > 0) this.#commonAfter = common
    return difference
  }
}

function slabAt(slabs: readonly (Slab | undefined)[], place: number): Slab {
  const slab = slabs[Math.floor(place / slabBytes)]
  if (slab === undefined) throw new RangeError(`no slab at place ${place}`)
  return slab
}

function append(slab: Slab, slot: number, text: Buffer): number {
  const { bytes, words, used, id } = slab
  const start = used + headerBytes
  words.setUint32(used, slot)
  words.setUint32(used + 4, text.length)
  bytes.set(text, start)
  slab.used += headerBytes + text.length
  slab.alive += headerBytes + text.length
  return id * slabBytes + start
}

/** Places can exceed 32 bits, for which `%` is slow. */
function offsetOf(place: number): number {
  return place - Math.floor(place / slabBytes) * slabBytes
}

function lengthAt(words: DataView, start: number): number {
  return words.getUint32(start - 4)
}
