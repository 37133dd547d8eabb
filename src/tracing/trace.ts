import { randomBytes } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Span, SpanContext, SpanKind, SpanValue } from '../lib/tracing/span.ts'

/** Enough for each request; a long collection delete records its first parts. */
export const SPANS_PER_TRACE_MAX = 64
/** A batch carries at most a hundred writes. */
export const LINKS_PER_SPAN_MAX = 128
/** The approximate size of a span in memory, without its links. */
const SPAN_BYTES = 600
const LINK_BYTES = 150

/** What the traces of one server share. */
export interface Recording {
  readonly clock: Clock
  /** The wall clock. */
  readonly now: () => number
  /** Takes the spans that are to be exported. */
  readonly onSpan: (span: RecordedSpan) => void
  /** Called for each span above the limit of its trace. */
  readonly onOmitted: () => void
}

/**
 * The spans of one request, or of one batch of writes. It begins before it is known whether the
 * trace is kept, since that depends on the user: until `keep` or `drop`, its spans are held here.
 */
export class Trace {
  readonly recording: Recording
  readonly root: RecordedSpan
  /** Wall clock minus monotonic clock when the trace began: corrections do not tear it apart. */
  readonly #offsetMs: number
  #traceId: string
  readonly #spanIdStart: string
  #spanNumber: number
  #spanCount = 0
  /** Undefined once it is decided whether they are exported. */
  #held: RecordedSpan[] | undefined = []
  #isDropped = false

  constructor(recording: Recording, name: string, kind: RecordedSpan['kind']) {
    this.recording = recording
    this.#offsetMs = recording.now() - recording.clock.now()
    const random = randomBytes(RANDOM_BYTES).toString('hex')
    this.#traceId = random.slice(0, 32)
    this.#spanIdStart = random.slice(32, 44)
    this.#spanNumber = Number.parseInt(random.slice(44), 16)
    this.root = new RecordedSpan(this, { name, kind, parentSpanId: undefined })
    this.#spanCount = 1
  }

  get traceId(): string {
    return this.#traceId
  }

  /** The spans are exported, those so far and all further ones. */
  keep(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const span of held) this.recording.onSpan(span)
  }

  /** The same, as a part of the trace of a client. */
  keepWithin({ traceId, spanId }: SpanContext): void {
    this.#traceId = traceId
    this.root.parentSpanId = spanId
    this.keep()
  }

  /** Nothing is exported. */
  drop(): void {
    this.#held = undefined
    this.#isDropped = true
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.#offsetMs + this.recording.clock.now()
  }

  /** Unique in this trace; the start is random, the end is counted. */
  nextSpanId(): string {
    const end = this.#spanNumber++ & 0xffff
    return this.#spanIdStart + end.toString(16).padStart(4, '0')
  }

  /** Whether one more span may be recorded. */
  hasRoom(): boolean {
    if (this.#spanCount < SPANS_PER_TRACE_MAX) {
      this.#spanCount += 1
      return true
    }
    if (!this.#isDropped) this.recording.onOmitted()
    return false
  }

  ended(span: RecordedSpan): void {
    if (this.#held !== undefined) this.#held.push(span)
    else if (!this.#isDropped) this.recording.onSpan(span)
  }
}

/** 16 for the trace, 8 for its spans. */
const RANDOM_BYTES = 24

export class RecordedSpan implements Span {
  readonly spanId: string
  readonly kind: SpanKind | 'server'
  readonly startMs: number
  readonly values: Record<string, SpanValue> = {}
  readonly links: SpanContext[] = []
  name: string
  parentSpanId: string | undefined
  endMs = 0
  /** What kind of error ended it. */
  failure: string | undefined
  readonly #trace: Trace

  constructor(
    trace: Trace,
    options: Pick<RecordedSpan, 'name' | 'kind' | 'parentSpanId'> & { readonly startMs?: number },
  ) {
    this.#trace = trace
    this.spanId = trace.nextSpanId()
    this.name = options.name
    this.kind = options.kind
    this.parentSpanId = options.parentSpanId
    this.startMs = options.startMs ?? trace.now()
  }

  get context(): SpanContext {
    return { traceId: this.#trace.traceId, spanId: this.spanId }
  }

  /** Its approximate size in memory. */
  get bytes(): number {
    return SPAN_BYTES + this.links.length * LINK_BYTES
  }

  child(name: string, kind: SpanKind = 'internal'): Span {
    if (!this.#trace.hasRoom()) return new OmittedSpan(this)
    return new RecordedSpan(this.#trace, { name, kind, parentSpanId: this.spanId })
  }

  shared(name: string): Span {
    const trace = new Trace(this.#trace.recording, name, 'internal')
    trace.keep()
    return trace.root
  }

  set(name: string, value: SpanValue): void {
    this.values[name] = value
  }

  link(other: SpanContext): void {
    if (this.links.length < LINKS_PER_SPAN_MAX) this.links.push(other)
  }

  end(error?: unknown): void {
    this.endMs = this.#trace.now()
    if (error !== undefined) this.failure = failureOf(error)
    this.#trace.ended(this)
  }
}

/** A span above the limit of its trace: nothing is recorded of it. */
class OmittedSpan implements Span {
  readonly #parent: RecordedSpan

  constructor(parent: RecordedSpan) {
    this.#parent = parent
  }

  get context(): SpanContext {
    return this.#parent.context
  }

  child(): Span {
    return this
  }

  shared(name: string): Span {
    return this.#parent.shared(name)
  }

  set(): void {}

  link(): void {}

  end(): void {}
}

/** Our errors have a reason or a kind, which is a word of ours; messages may quote clients. */
function failureOf(error: unknown): string {
  const { reason, kind } = error as { readonly reason?: unknown; readonly kind?: unknown }
  for (const word of [reason, kind]) {
    if (typeof word === 'string' && /^[A-Za-z-]{1,40}$/.test(word)) return word
  }
  return 'error'
}
