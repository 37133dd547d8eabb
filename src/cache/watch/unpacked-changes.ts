import { type FramedItem, Frames, framed } from '../../storage/frames.ts'
import type { WatchItem } from '../../storage/storage.ts'
import { unpackedBytesOf } from './history-bounds.ts'

/** Many batches: watchers that fell behind together are not all at the same place. */
const changesMax = 4_096

interface Unpacked {
  readonly position: number
  readonly item: FramedItem
}

/**
 * Packed changes that were read lately, unpacked, with their frames. Watchers that fell behind
 * together, such as all of them after a pause, so share what they encode, as they do for fresh
 * changes. Otherwise many of them would never catch up.
 *
 * The place of a change follows from its position, so those of one place replace each other.
 */
export class UnpackedChanges {
  readonly #bytesMax: number
  readonly #items: (Unpacked | undefined)[] = new Array<undefined>(changesMax).fill(undefined)
  readonly #onFrame = (bytes: number): void => {
    this.#bytes += bytes
    this.#evict()
  }
  #bytes = 0
  /** Where to look for the next one to evict. */
  #hand = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The change at this position of the history, which `unpack` returns if it is not known. */
  read(position: number, unpack: () => WatchItem): FramedItem {
    const place = position % changesMax
    const known = this.#items[place]
    if (known?.position === position) return known.item
    this.#drop(place)
    const item = framed(unpack(), new Frames(this.#onFrame))
    this.#items[place] = { position, item }
    this.#bytes += unpackedBytesOf(item)
    this.#evict()
    return item
  }

  clear(): void {
    for (let place = 0; place < changesMax; place++) this.#drop(place)
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax) {
      this.#drop(this.#hand)
      this.#hand = (this.#hand + 1) % changesMax
    }
  }

  #drop(place: number): void {
    const known = this.#items[place]
    if (known === undefined) return
    this.#items[place] = undefined
    this.#bytes -= unpackedBytesOf(known.item) + known.item.frames.end()
  }
}
