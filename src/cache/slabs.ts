/**
 * Bodies of events outside the JavaScript heap: a million of them are a few thousand buffers, and
 * nothing for the garbage collector to walk.
 *
 * Bytes are appended and never written over, so a view that was handed out stays what it is for as
 * long as somebody holds it. When a quarter of a slab is dead, what lives in it moves on and the
 * slab is left to its last reader. Events mostly leave in the order they came, so most slabs die
 * whole.
 */

const slabBytes = 256 * 1024
/** The slot and the length in front of each body, for the walk over a slab that is given up. */
const headerBytes = 8
/** Sealed slabs with less alive than this are given up: moving costs three bytes for each won. */
const aliveMin = 0.75

interface Slab {
  readonly id: number
  readonly bytes: Buffer
  used: number
  alive: number
}

/** Who knows where each slot's body is. */
export interface PlaceBook {
  placeOf(slot: number): number
  moved(slot: number, place: number): void
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

  /** Copies the body; answers its place. */
  put(slot: number, body: Buffer): number {
    const need = headerBytes + body.length
    // What would take a slab for itself gets one, of its own size.
    if (need > slabBytes / 2) return this.#append(this.#open(need), slot, body)
    while (this.#current.used + need > slabBytes) this.#seal()
    return this.#append(this.#current, slot, body)
  }

  /** What died while the slab was being filled has not been looked at; nobody else will. */
  #seal(): void {
    const sealed = this.#current
    this.#current = this.#open(slabBytes)
    if (sealed.alive < sealed.used * aliveMin) this.#giveUp(sealed)
  }

  view(place: number, length: number): Buffer {
    const offset = place % slabBytes
    return this.#at(place).bytes.subarray(offset, offset + length)
  }

  /** The slot must not be at this place any more as far as the book knows. */
  free(place: number, length: number): void {
    const slab = this.#at(place)
    slab.alive -= headerBytes + length
    if (slab === this.#current || slab.alive >= slab.used * aliveMin) return
    this.#giveUp(slab)
  }

  #append(slab: Slab, slot: number, body: Buffer): number {
    const { bytes, used, id } = slab
    bytes.writeUInt32LE(slot, used)
    bytes.writeUInt32LE(body.length, used + 4)
    body.copy(bytes, used + headerBytes)
    slab.used += headerBytes + body.length
    slab.alive += headerBytes + body.length
    return id * slabBytes + used + headerBytes
  }

  #giveUp(slab: Slab): void {
    this.#slabs[slab.id] = undefined
    this.#bytesHeld -= slab.bytes.length
    const { id, bytes, used } = slab
    if (slab.alive > 0) {
      for (let at = 0; at < used; ) {
        const slot = bytes.readUInt32LE(at)
        const start = at + headerBytes
        at = start + bytes.readUInt32LE(at + 4)
        if (this.#book.placeOf(slot) !== id * slabBytes + start) continue
        this.#book.moved(slot, this.put(slot, bytes.subarray(start, at)))
      }
    }
    this.#freeIds.push(id)
  }

  #open(bytes: number): Slab {
    const id = this.#freeIds.pop() ?? this.#slabs.length
    const slab = { id, bytes: Buffer.allocUnsafeSlow(bytes), used: 0, alive: 0 }
    this.#slabs[id] = slab
    this.#bytesHeld += bytes
    return slab
  }

  #at(place: number): Slab {
    const slab = this.#slabs[Math.floor(place / slabBytes)]
    if (slab === undefined) throw new RangeError(`nothing is kept at ${place}`)
    return slab
  }
}
