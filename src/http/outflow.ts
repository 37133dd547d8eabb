import type { Pull } from '../lib/pull.ts'
import { type Chunk, isPull } from './exchange.ts'
import type { Wire } from './wire.ts'

/**
 * Sends an answer that comes in pieces, at the client's pace. Never writes past a full stream: a
 * client that does not read costs one piece, not a queue.
 */
export class Outflow {
  readonly #wire: Wire
  readonly #ended: (failure?: { readonly thrown: unknown }) => void
  #onRoom: (() => void) | undefined
  #bytes = 0
  #pull: Pull<Chunk> | undefined

  /** `ended` is told when there are no more pieces, and what their source threw if that is why. */
  constructor(wire: Wire, ended: (failure?: { readonly thrown: unknown }) => void) {
    this.#wire = wire
    this.#ended = ended
  }

  /** Sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Kept by what makes the pieces, to be sent to this client alone. */
  get heldBytes(): number {
    return this.#pull?.heldBytes ?? 0
  }

  send(pieces: AsyncIterable<Chunk>, isLent: boolean): void {
    if (isPull(pieces)) this.#pump(pieces)
    else void this.#walk(pieces, isLent)
  }

  /** The output is closed: whoever waits for room need not. */
  close(): void {
    this.#hasRoom()
  }

  async #walk(pieces: AsyncIterable<Chunk>, isLent: boolean): Promise<void> {
    try {
      for await (const piece of pieces) {
        if (this.#isShut()) return
        if (this.#write(piece, isLent)) continue
        await new Promise<void>((resolve) => {
          this.#onRoom = resolve
        })
      }
      this.#ended()
    } catch (thrown) {
      this.#ended({ thrown })
    }
  }

  /** As much as there is and has room, then again when called. */
  #pump(pull: Pull<Chunk>): void {
    this.#pull = pull
    const more = (): void => {
      try {
        for (let piece = pull.take(more); piece !== undefined; piece = pull.take(more)) {
          if (this.#isShut()) pull.stop()
          else if (!this.#write(piece, false)) {
            this.#onRoom = more
            return
          }
        }
        if (pull.isOver && !this.#isShut()) this.#ended()
      } catch (thrown) {
        pull.stop()
        this.#ended({ thrown })
      }
    }
    more()
  }

  #isShut(): boolean {
    const { output } = this.#wire
    return output.destroyed || output.writableEnded
  }

  /** Whether there is room for more; else `#onRoom` is called when there is, or never will be. */
  #write(piece: Chunk, isLent: boolean): boolean {
    this.#bytes += piece.length
    return this.#wire.write(piece, isLent, this.#hasRoom)
  }

  readonly #hasRoom = (): void => {
    const onRoom = this.#onRoom
    this.#onRoom = undefined
    onRoom?.()
  }
}
