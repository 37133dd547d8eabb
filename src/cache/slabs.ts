/**
 * Keys or bodies of events outside the JavaScript heap: a million of them are a few thousand
 * buffers, and nothing for the garbage collector to walk. Keys are not kept with the bodies: they
 * are compared all the time, and where they lie close together much less memory is touched.
 *
 * Bytes are appended and never written over, so a view that was handed out stays what it is for as
 * long as somebody holds it. When a quarter of a slab is dead, what lives in it moves on and the
 * slab is left to its last reader. Events mostly leave in the order they came, so most slabs die
 * whole.
 */

const slabBytes = 256 * 1024
/** The slot and the length in front of each text, for the walk over a slab that is given up. */
const headerBytes = 8
/** Sealed slabs with less alive than this are given up: moving costs three bytes for each won. */
const aliveMin = 0.75

interface Slab {
  readonly id: number
  readonly bytes: Buffer
  readonly words: DataView
  used: number
  alive: number
}

/** Who knows where each slot's text is. */
export interface PlaceBook {
  placeOf(slot: number): number
  moved(slot: number, place: number): void
}

/** A text that stays where it is for as long as somebody knows of it. */
export interface KeptText {
  readonly words: DataView
  readonly offset: number
}

export function bytesOfKept({ words, offset }: KeptText): Buffer {
  return Buffer.from(words.buffer as ArrayBuffer, offset, lengthAt(words, offset))
}

export class Slabs {
  readonly #book: PlaceBook
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeIds: number[] = []
  #current: Slab
  #bytesHeld = 0

  constructor(book: PlaceBook) {
    this.#book = book
    this.#current = this.#open(slabBytes)
  }

  /** All slabs together, dead bytes included. */
  get bytesHeld(): number {
    return this.#bytesHeld
  }

  /** Copies the text; answers its place. */
  put(slot: number, text: Buffer): number {
    const need = headerBytes + text.length
    // What would take a slab for itself gets one, of its own size.
    if (need > slabBytes / 2) return append(this.#open(need), slot, text)
    while (this.#current.used + need > slabBytes) this.#seal()
    return append(this.#current, slot, text)
  }

  /** What died while the slab was being filled has not been looked at; nobody else will. */
  #seal(): void {
    const sealed = this.#current
    this.#current = this.#open(slabBytes)
    if (sealed.alive < sealed.used * aliveMin) this.#giveUp(sealed)
  }

  view(place: number, length: number): Buffer {
    const offset = offsetOf(place)
    return this.#at(place).bytes.subarray(offset, offset + length)
  }

  lengthOf(place: number): number {
    return lengthAt(this.#at(place).words, offsetOf(place))
  }

  /** Where to look for the text later on, whatever happens until then. */
  keep(place: number): KeptText {
    return { words: this.#at(place).words, offset: offsetOf(place) }
  }

  /** Below 0 when the text there comes before the other, in the order of bytes; 0 when they are equal. */
  compare(place: number, other: number): number {
    const { words } = this.#at(other)
    const start = offsetOf(other)
    return this.#compare(place, words, start, lengthAt(words, start))
  }

  /** The same with a text that is not kept here. */
  compareWith(place: number, text: DataView): number {
    return this.#compare(place, text, 0, text.byteLength)
  }

  /** The slot must not be at this place any more as far as the book knows. */
  free(place: number, length: number): void {
    const slab = this.#at(place)
    slab.alive -= headerBytes + length
    if (slab === this.#current || slab.alive >= slab.used * aliveMin) return
    this.#giveUp(slab)
  }

  /** By hand, four bytes at a time: a call out of JavaScript costs more than all of it. */
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

  #giveUp(slab: Slab): void {
    this.#slabs[slab.id] = undefined
    this.#bytesHeld -= slab.bytes.length
    const { id, bytes, words, used } = slab
    if (slab.alive > 0) {
      for (let at = 0; at < used; ) {
        const slot = words.getUint32(at)
        const start = at + headerBytes
        at = start + lengthAt(words, start)
        if (this.#book.placeOf(slot) !== id * slabBytes + start) continue
        this.#book.moved(slot, this.put(slot, bytes.subarray(start, at)))
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
    const slab = this.#slabs[Math.floor(place / slabBytes)]
    if (slab === undefined) throw new RangeError(`nothing is kept at ${place}`)
    return slab
  }
}

function append(slab: Slab, slot: number, text: Buffer): number {
  const { bytes, words, used, id } = slab
  const start = used + headerBytes
  words.setUint32(used, slot)
  words.setUint32(used + 4, text.length)
  text.copy(bytes, start)
  slab.used += headerBytes + text.length
  slab.alive += headerBytes + text.length
  return id * slabBytes + start
}

/** Places are larger than the numbers that `%` is quick with. */
function offsetOf(place: number): number {
  return place - Math.floor(place / slabBytes) * slabBytes
}

function lengthAt(words: DataView, start: number): number {
  return words.getUint32(start - 4)
}
