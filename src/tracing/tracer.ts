import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { RecordedSpan } from './trace.ts'
import { Trace } from './trace.ts'
import { parseTraceparent, type RemoteParent } from './traceparent.ts'

const MILLION = 1_000_000

export interface TracerOptions {
  /** How many of a million requests are recorded, unless their clients decide that. */
  readonly samplingRatePerMillion: number
  readonly onSpan: (span: RecordedSpan) => void
  /** From 0 up to 1. */
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
  /** Spans that were not recorded, since their trace had too many. */
  omitted = 0
  readonly #options: TracerOptions
  readonly #random: () => number
  readonly #recording: ConstructorParameters<typeof Trace>[0]

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

  /** Undefined, as nearly always, when the request is certainly not recorded. */
  begin(traceparent: string | undefined): UndecidedTrace | undefined {
    const isChosen = this.#random() * MILLION < this.#options.samplingRatePerMillion
    if (traceparent === undefined && !isChosen) return undefined
    const remote = traceparent === undefined ? undefined : parseTraceparent(traceparent)
    if (!isChosen && remote?.isSampled !== true) return undefined
    return new UndecidedTrace(new Trace(this.#recording, '', 'server'), { remote, isChosen })
  }
}

/** The trace of a request whose user is not known yet. */
export class UndecidedTrace {
  readonly root: RecordedSpan
  readonly #trace: Trace
  readonly #remote: RemoteParent | undefined
  readonly #isChosen: boolean

  constructor(
    trace: Trace,
    options: { readonly remote: RemoteParent | undefined; readonly isChosen: boolean },
  ) {
    this.#trace = trace
    this.root = trace.root
    this.#remote = options.remote
    this.#isChosen = options.isChosen
  }

  /** Called once; whether the request is recorded. */
  decide({ isTrusted }: { readonly isTrusted: boolean }): boolean {
    const remote = this.#remote
    if (remote !== undefined && isTrusted) {
      if (remote.isSampled) this.#trace.keepWithin(remote)
      else this.#trace.drop()
      return remote.isSampled
    }
    if (!this.#isChosen) {
      this.#trace.drop()
      return false
    }
    if (remote !== undefined) this.root.link({ traceId: remote.traceId, spanId: remote.spanId })
    this.#trace.keep()
    return true
  }
}
