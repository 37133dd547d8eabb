import { randomBytes } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Span, SpanContext, SpanKind, SpanValue } from '../lib/tracing/span.ts'

/** Every request fits, except a long collection delete: it records its first parts. */
export const SPANS_PER_TRACE_MAX = 64
/** A batch carries at most a hundred writes. */
export const LINKS_PER_SPAN_MAX = 128
/** The approximate size of a span in memory, without its values and links. */
const SPAN_BYTES = 600
/** The approximate size of a value, without its text. */
const VALUE_BYTES = 64
const LINK_BYTES = 150

/** The clocks and callbacks that the traces of one server share. */
export interface Recording {
  readonly clock: Clock
  /** The wall clock. */
  readonly now: () => number
  /** Called with each span that has ended. */
  readonly onSpan: (span: RecordedSpan) => void
  /** Called for each span above the limit of its trace. */
  readonly onOmitted: () => void
}

export interface TraceOptions {
  readonly name: string
  readonly kind: RecordedSpan['kind']
  /** The client's span, if this trace is a part of the client's trace. */
  readonly parent?: SpanContext | undefined
  /** When the first span began, by the clock of the recording; default: now. */
  readonly beganAtMs?: number | undefined
}

/** The spans of one request, of one batch of writes, or of one read that requests share. */
export class Trace {
  readonly recording: Recording
  readonly root: RecordedSpan
  readonly traceId: string
  /** Wall clock minus monotonic clock at the start, so that clock corrections do not shift spans. */
  readonly #offsetMs: number
  readonly #spanIdStart: string
  #spanNumber: number
  #spanCount = 1

  constructor(recording: Recording, { name, kind, parent, beganAtMs }: TraceOptions) {
    this.recording = recording
    const nowMs = recording.clock.now()
    this.#offsetMs = recording.now() - nowMs
    const random = randomBytes(RANDOM_BYTES).toString('hex')
    this.traceId = parent?.traceId ?? random.slice(0, 32)
    this.#spanIdStart = random.slice(32, 44)
    this.#spanNumber = Number.parseInt(random.slice(44), 16)
    const startMs = this.#offsetMs + (beganAtMs ?? nowMs)
    this.root = new RecordedSpan(this, { name, kind, parentSpanId: parent?.spanId, startMs })
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.#offsetMs + this.recording.clock.now()
  }

  /** Unique in this trace: a random prefix, and a counter. */
  nextSpanId(): string {
    const end = this.#spanNumber++ & 0xffff
    return this.#spanIdStart + end.toString(16).padStart(4, '0')
  }

  /** Counts one more span; returns whether it may be recorded. */
  addSpan(): boolean {
    if (this.#spanCount < SPANS_PER_TRACE_MAX) {
      this.#spanCount += 1
      return true
    }
    this.recording.onOmitted()
    return false
  }
}

/** 16 for the id of the trace, 8 for those of its spans. */
const RANDOM_BYTES = 24

export class RecordedSpan implements Span {
  readonly spanId: string
  readonly kind: SpanKind | 'server'
  readonly parentSpanId: string | undefined
  readonly startMs: number
  readonly values: Record<string, SpanValue> = {}
  readonly links: SpanContext[] = []
  name: string
  endMs = 0
  /** The kind of error that ended the span. */
  failure: string | undefined
  readonly #trace: Trace
  #valueBytes = 0
  #isEnded = false

  constructor(
    trace: Trace,
    options: Pick<RecordedSpan, 'name' | 'kind' | 'parentSpanId' | 'startMs'>,
  ) {
    this.#trace = trace
    this.spanId = trace.nextSpanId()
    this.name = options.name
    this.kind = options.kind
    this.parentSpanId = options.parentSpanId
    this.startMs = options.startMs
  }

  get context(): SpanContext {
    return { traceId: this.#trace.traceId, spanId: this.spanId }
  }

  /** Approximate size in memory. */
  get bytes(): number {
    return SPAN_BYTES + this.#valueBytes + this.links.length * LINK_BYTES
  }

  child(name: string, kind: SpanKind = 'internal'): Span {
    return this.#part(name, kind, this.#trace.now())
  }

  /** Starts a child span that began together with this one. */
  firstChild(name: string): Span {
    return this.#part(name, 'internal', this.startMs)
  }

  shared(name: string): Span {
    return new Trace(this.#trace.recording, { name, kind: 'internal' }).root
  }

  set(name: string, value: SpanValue): void {
    if (this.#isEnded) return
    this.values[name] = value
    this.#valueBytes += VALUE_BYTES + (typeof value === 'string' ? Buffer.byteLength(value) : 0)
  }

  link(other: SpanContext | undefined): void {
    if (other === undefined || this.#isEnded || this.links.length >= LINKS_PER_SPAN_MAX) return
    this.links.push(other)
  }

  end(error?: unknown): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.endMs = this.#trace.now()
    if (error !== undefined) this.failure = failureOf(error)
    this.#trace.recording.onSpan(this)
  }

  #part(name: string, kind: SpanKind, startMs: number): Span {
    const trace = this.#trace
    if (!trace.addSpan()) return OMITTED
    return new RecordedSpan(trace, { name, kind, parentSpanId: this.spanId, startMs })
  }
}

/** Stands for a span above the limit of its trace: neither it nor its shared work is recorded. */
const OMITTED: Span = {
  context: undefined,
  child: () => OMITTED,
  shared: () => undefined,
  set: () => {},
  link: () => {},
  end: () => {},
}

/** The reason or kind of our errors is one of our own words; messages may quote clients. */
function failureOf(error: unknown): string {
  const { reason, kind } = error as { readonly reason?: unknown; readonly kind?: unknown }
  for (const word of [reason, kind]) {
    if (typeof word === 'string' && /^[A-Za-z-]{1,40}$/.test(word)) return word
  }
  return 'error'
}
