import type { StatusError } from '../../api/status.ts'
import type { WatchEncoders } from '../../codec/encoders/event-encoders.ts'
import type { WatchEncoder } from '../../codec/encoders/watch-encoder.ts'
import { transitionFor } from '../../registry/read/transitions.ts'
import { frameOf, framesOf, joined } from '../../storage/frames.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventSelector, StoredEvent, WatchBatch } from '../../storage/storage.ts'

/** A failed watch can restart on another replica at once, or on this one a little later. */
const retryAfterSeconds = 2
/** Failures that a retry of the same watch does not fix. */
const permanentReasons: ReadonlySet<string> = new Set(['Expired', 'Unauthorized', 'Forbidden'])

/** Encodes the frames for one watcher, in its format and filtered by its selector. */
export class WatchFrameWriter {
  readonly #encoders: WatchEncoders
  readonly #selector: EventSelector | undefined
  /** Only the first frame of a table has the column definitions. */
  #hasBegun = false

  constructor(encoders: WatchEncoders, selector: EventSelector | undefined) {
    this.#encoders = encoders
    this.#selector = selector
    this.#hasBegun = encoders.first === encoders.next
  }

  /** Encodes the frames of a batch lazily. */
  changeFrames(batch: WatchBatch): Iterable<Buffer> {
    const { next } = this.#encoders
    if (this.#selector === undefined && this.#hasBegun) return framesOf(batch, next.natural)
    return joined(this.#changeFrames(batch))
  }

  /** Encodes the frames of events that exist when the watch starts. */
  initialFrames(events: readonly StoredEvent[]): Iterable<Buffer> {
    return joined(this.#initialFrames(events))
  }

  bookmark(version: Version, isInitialEnd: boolean): Buffer {
    return this.#encoder().bookmark(version, isInitialEnd)
  }

  /**
   * A temporary failure says when to retry. An expired version and revoked access do not: the
   * client must list again, and gets the reason then.
   */
  error(status: StatusError): Buffer {
    const body = status.status()
    if (permanentReasons.has(body.reason ?? '')) return this.#encoders.next.error(body)
    const details = { ...body.details, retryAfterSeconds }
    return this.#encoders.next.error({ ...body, details })
  }

  *#changeFrames({ items }: WatchBatch): Generator<Buffer> {
    for (const item of items) {
      const transition = transitionFor(item, this.#selector)
      if (transition !== undefined) yield frameOf(item, this.#encoder()[transition])
    }
  }

  *#initialFrames(events: readonly StoredEvent[]): Generator<Buffer> {
    for (const event of events) yield this.#encoder().present(event)
  }

  #encoder(): WatchEncoder {
    if (this.#hasBegun) return this.#encoders.next
    this.#hasBegun = true
    return this.#encoders.first
  }
}
