import { type Clock, monotonicClock } from '../lib/clock.ts'
import { type RecordedSpan, type Recording, Trace } from './trace.ts'
import { parseTraceparent, type RemoteParent } from './traceparent.ts'

const MILLION = 1_000_000

export interface TracerOptions {
  /** How many of a million requests are recorded, unless trusted clients decide. */
  readonly samplingRatePerMillion: number
  readonly onSpan: (span: RecordedSpan) => void
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined
  readonly clock?: Clock | undefined
  readonly now?: (() => number) | undefined
}

/**
 * Decides which requests are recorded, by the rules of a Kubernetes API server. A client whose
 * `traceparent` is trusted decides for its requests, and they become parts of its trace. All other
 * requests are chosen at random, and get traces of their own, which only point at the client's:
 * otherwise any client could have all of its requests recorded, and fill the traces of others.
 */
export class Tracer {
  /** Counts the spans that were not recorded because their trace had too many. */
  omitted = 0
  readonly #options: TracerOptions
  readonly #random: () => number
  readonly #recording: Recording

  constructor(options: TracerOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#recording = {
      clock: options.clock ?? monotonicClock,
      now: options.now ?? Date.now,
      onSpan: options.onSpan,
      onOmitted: () => {
        this.omitted += 1
      },
    }
  }

  /** Returns undefined, as for nearly all requests, when the request is certainly not recorded. */
  begin(traceparent: string | undefined): UndecidedTrace | undefined {
    const isChosen = this.#random() * MILLION < this.#options.samplingRatePerMillion
    if (traceparent === undefined && !isChosen) return undefined
    const remote = traceparent === undefined ? undefined : parseTraceparent(traceparent)
    if (!isChosen && remote?.isSampled !== true) return undefined
    return new UndecidedTrace(this.#recording, { remote, isChosen })
  }
}

/** What is known about the sender of a request. */
export interface Sender {
  /** Whether its credentials are valid. */
  readonly isKnown: boolean
  /** Whether its `traceparent` decides. */
  readonly isTrusted: boolean
}

/**
 * A request whose user is not known yet. Only its parsed header and its start are retained, since
 * any client can send such a header.
 */
export class UndecidedTrace {
  readonly #recording: Recording
  readonly #remote: RemoteParent | undefined
  readonly #isChosen: boolean
  readonly #beganAtMs: number

  constructor(
    recording: Recording,
    options: { readonly remote: RemoteParent | undefined; readonly isChosen: boolean },
  ) {
    this.#recording = recording
    this.#remote = options.remote
    this.#isChosen = options.isChosen
    this.#beganAtMs = recording.clock.now()
  }

  /** Called once. Returns the span of the whole request, if it is recorded. */
  decide({ isKnown, isTrusted }: Sender): RecordedSpan | undefined {
    const remote = this.#remote
    const decides = isTrusted && remote !== undefined
    if (!(decides ? remote.isSampled : this.#isChosen)) return undefined
    const { root } = new Trace(this.#recording, {
      name: '',
      kind: 'server',
      beganAtMs: this.#beganAtMs,
      parent: decides ? remote : undefined,
    })
    if (remote !== undefined && isKnown && !decides) {
      root.link({ traceId: remote.traceId, spanId: remote.spanId })
    }
    return root
  }
}
