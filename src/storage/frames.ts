/**
 * Encoded watch frames: each change is encoded once per encoder and shared by all watchers. An
 * encoder is an object that lives as long as the program: one for each media type and each kind of
 * watch frame.
 */
import type { WatchBatch, WatchItem } from './storage.ts'

export interface FrameEncoder {
  encode(item: WatchItem): Buffer
}

/** How many encoders' frames are cached for one change. */
const framesMax = 8
/** One TLS record including HTTP framing, so that a watcher which does not read buffers little. */
const pieceBytes = 16 * 1024 - 64

/** The cached frames of one change while watchers share it. */
export class Frames {
  readonly #onMade: (bytes: number, isLate: boolean) => void
  #made: Map<FrameEncoder, Buffer> | undefined
  #isLate = false
  #isOver = false

  /** `isLate` is true for frames that are made after the first call of `clear`. */
  constructor(onMade: (bytes: number, isLate: boolean) => void) {
    this.#onMade = onMade
  }

  of(item: WatchItem, encoder: FrameEncoder): Buffer {
    const known = this.#made?.get(encoder)
    if (known !== undefined) return known
    const frame = encoder.encode(item)
    if (this.#isOver || (this.#made?.size ?? 0) >= framesMax) return frame
    this.#made ??= new Map()
    this.#made.set(encoder, frame)
    this.#onMade(frame.length, this.#isLate)
    return frame
  }

  /** Drops the cached frames and returns their size in bytes. */
  clear(): number {
    let bytes = 0
    for (const frame of this.#made?.values() ?? []) bytes += frame.length
    this.#made = undefined
    this.#isLate = true
    return bytes
  }

  /** Watchers share the change no more: drops its frames for good, and returns their size in bytes. */
  end(): number {
    this.#isOver = true
    return this.clear()
  }
}

/** A change that watchers share. */
export type FramedItem = WatchItem & { readonly frames: Frames }

/** Lists the members one by one, which is many times as fast as a spread. */
export function framed(item: WatchItem, frames: Frames): FramedItem {
  const { stored } = item
  if (item.type === 'delete') return { type: 'delete', stored, frames }
  return { type: 'put', stored, previous: item.previous, frames }
}

/** The size of the bodies of these changes in memory. */
export function bodyBytes(items: readonly WatchItem[]): number {
  let bytes = 0
  for (const item of items) bytes += bodyBytesOf(item)
  return bytes
}

/** The size of the bodies of one change: the new state and the previous one. */
export function bodyBytesOf(item: WatchItem): number {
  const previous = item.type === 'put' ? (item.previous?.body.length ?? 0) : 0
  return item.stored.body.length + previous
}

/** A batch that several watchers share, with its encoded frames. */
export class SharedBatch implements WatchBatch {
  readonly items: readonly WatchItem[]
  readonly version: WatchBatch['version']
  /** The number of watchers that hold the batch. */
  holders = 0
  #bytes: number | undefined
  #pieces: Map<FrameEncoder, readonly Buffer[]> | undefined

  constructor(items: readonly WatchItem[], version: WatchBatch['version']) {
    this.items = items
    this.version = version
  }

  /** The size of the batch, divided by the number of watchers that hold it. */
  get bytesOfEach(): number {
    this.#bytes ??= bodyBytes(this.items)
    return this.#bytes / Math.max(1, this.holders)
  }

  pieces(encoder: FrameEncoder): readonly Buffer[] {
    const known = this.#pieces?.get(encoder)
    if (known !== undefined) return known
    const made = [...joined(eachFrame(this.items, encoder))]
    this.#pieces ??= new Map()
    if (this.#pieces.size < framesMax) this.#pieces.set(encoder, made)
    return made
  }
}

/** The frame of an item of any watch; cached if the item is from the ring. */
export function frameOf(item: WatchItem, encoder: FrameEncoder): Buffer {
  const { frames } = item as Partial<FramedItem>
  return frames === undefined ? encoder.encode(item) : frames.of(item, encoder)
}

/**
 * All frames of a batch, joined into pieces of sendable size. Watchers of a shared batch share the
 * same bytes; for a batch of one watcher each piece is created when it is pulled.
 */
export function framesOf(batch: WatchBatch, encoder: FrameEncoder): Iterable<Buffer> {
  if (batch instanceof SharedBatch) return batch.pieces(encoder)
  return joined(eachFrame(batch.items, encoder))
}

/** Joins frames into pieces; a frame that is longer than a piece is split. */
export function* joined(frames: Iterable<Buffer>): Generator<Buffer, void, undefined> {
  const pending = new PendingPiece()
  for (const frame of frames) {
    if (pending.bytes > 0 && pending.bytes + frame.length > pieceBytes) yield pending.take()
    let at = 0
    for (; frame.length - at > pieceBytes; at += pieceBytes) {
      yield frame.subarray(at, at + pieceBytes)
    }
    pending.add(at === 0 ? frame : frame.subarray(at))
  }
  if (pending.bytes > 0) yield pending.take()
}

/**
 * The frames of the next piece. Taking the piece drops them, so that a generator that is suspended
 * with a piece does not retain its frames as well.
 */
class PendingPiece {
  #frames: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  add(frame: Buffer): void {
    this.#frames.push(frame)
    this.#bytes += frame.length
  }

  take(): Buffer {
    const [only] = this.#frames
    const piece = only !== undefined && this.#frames.length === 1 ? only : this.#joined()
    this.#frames = []
    this.#bytes = 0
    return piece
  }

  /** Does not use Node's buffer pool: a buffered piece would retain the whole pool slab. */
  #joined(): Buffer {
    const piece = Buffer.allocUnsafeSlow(this.#bytes)
    let at = 0
    for (const frame of this.#frames) at += frame.copy(piece, at)
    return piece
  }
}

function* eachFrame(items: readonly WatchItem[], encoder: FrameEncoder): Generator<Buffer> {
  for (const item of items) yield frameOf(item, encoder)
}
