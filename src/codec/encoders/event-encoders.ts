import { PROTOBUF, type Representation } from '../representation.ts'
import { type EventShape, type EventView, PartialShape, WholeShape } from './event-shapes.ts'
import { protobufResponseEncoder, protobufWatchEncoder } from './protobuf-encoders.ts'
import { type ResponseEncoder, responseEncoder } from './response-encoder.ts'
import { TableShape } from './table-shape.ts'
import { bookmarkOf, type WatchEncoder, watchEncoder } from './watch-encoder.ts'
import { wildcardResponseEncoder, wildcardWatchEncoder } from './wildcard-encoders.ts'

/** The two encoders of a watch, which differ only for tables. */
export interface WatchEncoders {
  /** Encodes the first frame of a watch. */
  readonly first: WatchEncoder
  readonly next: WatchEncoder
}

/**
 * Creates and caches the encoders of one group, one for each representation. None is evicted, since
 * there are few. They must be cached: watchers share frames only if they have the same encoder.
 */
export class EventEncoders {
  readonly #view: EventView
  readonly #now: () => number
  readonly #isWildcard: boolean
  readonly #responseEncoders = new Map<string, ResponseEncoder>()
  readonly #watchEncoders = new Map<string, WatchEncoders>()

  /**
   * `now` is the wall clock in milliseconds, for the ages in tables. `isWildcard` is true for lists
   * and watches of all clusters, where each event names its cluster.
   */
  constructor(view: EventView, now: () => number, isWildcard = false) {
    this.#view = view
    this.#now = now
    this.#isWildcard = isWildcard
  }

  response(wanted: Representation): ResponseEncoder {
    const key = `${shapeKey(wanted)} ${wanted.mediaType} ${wanted.isPretty}`
    let encoder = this.#responseEncoders.get(key)
    if (encoder === undefined) {
      encoder =
        wanted.mediaType === PROTOBUF
          ? protobufResponseEncoder(this.#view, wanted)
          : responseEncoder(this.#shape(wanted), wanted)
      if (this.#isWildcard) encoder = wildcardResponseEncoder(encoder)
      this.#responseEncoders.set(key, encoder)
    }
    return encoder
  }

  /** Frames are protobuf, or one line of JSON each, whatever else the client accepts. */
  watch(wanted: Representation): WatchEncoders {
    const isProtobuf = wanted.mediaType === PROTOBUF
    const key = `${shapeKey(wanted)} ${isProtobuf}`
    let encoders = this.#watchEncoders.get(key)
    if (encoders === undefined) {
      encoders = isProtobuf
        ? sameEncoders(protobufWatchEncoder(this.#view, wanted))
        : watchEncoders(this.#shape(wanted), this.#view)
      if (this.#isWildcard) encoders = wildcardWatchEncoders(encoders)
      this.#watchEncoders.set(key, encoders)
    }
    return encoders
  }

  #shape(wanted: Representation): EventShape {
    const { as, metaVersion, includeObject } = wanted
    const whole = new WholeShape(this.#view)
    if (as === 'object') return whole
    const partial = new PartialShape(metaVersion)
    if (as === 'partial') return partial
    const rowObject = { None: undefined, Metadata: partial, Object: whole }[includeObject]
    return new TableShape({
      view: this.#view,
      metaVersion,
      rowObject,
      now: this.#now,
      isWildcard: this.#isWildcard,
    })
  }
}

function shapeKey({ as, metaVersion, includeObject }: Representation): string {
  return `${as} ${metaVersion} ${includeObject}`
}

function sameEncoders(encoder: WatchEncoder): WatchEncoders {
  return { first: encoder, next: encoder }
}

function wildcardWatchEncoders({ first, next }: WatchEncoders): WatchEncoders {
  const encoder = wildcardWatchEncoder(first)
  return { first: encoder, next: next === first ? encoder : wildcardWatchEncoder(next) }
}

function watchEncoders(shape: EventShape, view: EventView): WatchEncoders {
  const bookmark = bookmarkOf(view)
  const first = watchEncoder(shape, bookmark)
  if (!(shape instanceof TableShape)) return sameEncoders(first)
  return { first, next: watchEncoder(shape.withoutColumns(), bookmark) }
}
