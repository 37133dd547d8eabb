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

/** What several watchers are due at once: the same object for all of them. */
export class SharedBatch implements WatchBatch {
  readonly items: readonly WatchItem[]
  readonly version: WatchBatch['version']
  /** For iterators to hand over: one for all of them, too. */
  readonly result: { readonly value: WatchBatch; readonly done: false }
  #joined: Map<FrameEncoder, Buffer> | undefined

  constructor(items: readonly WatchItem[], version: WatchBatch['version']) {
    this.items = items
    this.version = version
    this.result = { value: this, done: false }
  }

  joined(encoder: FrameEncoder): Buffer {
    const known = this.#joined?.get(encoder)
    if (known !== undefined) return known
    const joined = join(this.items, encoder)
    this.#joined ??= new Map()
    if (this.#joined.size < framesMax) this.#joined.set(encoder, joined)
    return joined
  }
}

/** The frame of an item of any watch; encoded once if it is out of the ring. */
export function frameOf(item: WatchItem, encoder: FrameEncoder): Buffer {
  const { frames } = item as Partial<FramedItem>
  return frames === undefined ? encoder.encode(item) : frames.of(item, encoder)
}

/** All frames of a batch in one piece: watchers that are due the same share the same bytes. */
export function framesOf(batch: WatchBatch, encoder: FrameEncoder): Buffer {
  return batch instanceof SharedBatch ? batch.joined(encoder) : join(batch.items, encoder)
}

function join(items: readonly WatchItem[], encoder: FrameEncoder): Buffer {
  const [only] = items
  if (only !== undefined && items.length === 1) return frameOf(only, encoder)
  return Buffer.concat(items.map((item) => frameOf(item, encoder)))
}
