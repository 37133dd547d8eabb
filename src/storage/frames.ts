/**
 * What a change looks like on the wire, made once however many watchers get it. An encoder is an
 * object that lives as long as the program: one for each media type and each way of telling a
 * change.
 */
import type { WatchBatch, WatchItem } from './storage.ts'

export interface FrameEncoder {
  encode(item: WatchItem): Buffer
}

/** Media types and ways of telling that are worth remembering for one change. */
const framesMax = 8
/** One record of TLS, with what HTTP puts around it: so little waits for who does not read. */
const pieceBytes = 16 * 1024 - 64

/** The frames of one change for as long as it is in the ring. */
export class Frames {
  readonly #onMade: (bytes: number) => void
  #made: Map<FrameEncoder, Buffer> | undefined
  #isOver = false

  constructor(onMade: (bytes: number) => void) {
    this.#onMade = onMade
  }

  of(item: WatchItem, encoder: FrameEncoder): Buffer {
    const known = this.#made?.get(encoder)
    if (known !== undefined) return known
    const frame = encoder.encode(item)
    if (this.#isOver || (this.#made?.size ?? 0) >= framesMax) return frame
    this.#made ??= new Map()
    this.#made.set(encoder, frame)
    this.#onMade(frame.length)
    return frame
  }

  /** The change has left the ring; answers what its frames took. */
  end(): number {
    let bytes = 0
    for (const frame of this.#made?.values() ?? []) bytes += frame.length
    this.#made = undefined
    this.#isOver = true
    return bytes
  }
}

/** A change in the ring. */
export type FramedItem = WatchItem & { readonly frames: Frames }

/** What the bodies of changes take in memory. */
export function bodyBytes(items: readonly WatchItem[]): number {
  let bytes = 0
  for (const item of items) bytes += bodyBytesOf(item)
  return bytes
}

/** The same of one, with the state before it. */
export function bodyBytesOf(item: WatchItem): number {
  const previous = item.type === 'put' ? (item.previous?.body.length ?? 0) : 0
  return item.stored.body.length + previous
}

/** What several watchers are due at once: the same object for all of them. */
export class SharedBatch implements WatchBatch {
  readonly items: readonly WatchItem[]
  readonly version: WatchBatch['version']
  #bytes: number | undefined
  #pieces: Map<FrameEncoder, readonly Buffer[]> | undefined

  constructor(items: readonly WatchItem[], version: WatchBatch['version']) {
    this.items = items
    this.version = version
  }

  get bytes(): number {
    this.#bytes ??= bodyBytes(this.items)
    return this.#bytes
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

/** The frame of an item of any watch; encoded once if it is out of the ring. */
export function frameOf(item: WatchItem, encoder: FrameEncoder): Buffer {
  const { frames } = item as Partial<FramedItem>
  return frames === undefined ? encoder.encode(item) : frames.of(item, encoder)
}

/**
 * All frames of a batch, in pieces fit to be sent. Watchers that are due the same share the same
 * bytes; for one that is alone each piece is made when it is asked for.
 */
export function framesOf(batch: WatchBatch, encoder: FrameEncoder): Iterable<Buffer> {
  if (batch instanceof SharedBatch) return batch.pieces(encoder)
  return joined(eachFrame(batch.items, encoder))
}

/** Frames as they come, put together into pieces; one that is longer than a piece is cut. */
export function* joined(frames: Iterable<Buffer>): Generator<Buffer, void, undefined> {
  const held = new Held()
  for (const frame of frames) {
    if (held.bytes > 0 && held.bytes + frame.length > pieceBytes) yield held.take()
    let at = 0
    for (; frame.length - at > pieceBytes; at += pieceBytes) {
      yield frame.subarray(at, at + pieceBytes)
    }
    held.add(at === 0 ? frame : frame.subarray(at))
  }
  if (held.bytes > 0) yield held.take()
}

/** Frames that will be one piece. Whoever waits with a piece in hand must not hold its frames too. */
class Held {
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

  /** Not out of Node's pool: a piece that waits would keep the whole of it. */
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
