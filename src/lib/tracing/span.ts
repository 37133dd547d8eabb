/**
 * Spans: what is recorded of a request that is traced. A request that is not recorded has no span:
 * whatever takes a span takes `undefined` for it, compares once, and does the work as it is.
 *
 * Names and values are our own words and numbers. Bodies, credentials and other text that a client
 * sent never get into a span, with three exceptions, for clients with valid credentials: the audit
 * id, the namespace if it is a DNS label, and the link to the client's span.
 */

export type SpanValue = string | number | boolean

/** Whether the work is done here, or by another program that is called. */
export type SpanKind = 'internal' | 'client'

/** The identity of a span, for links. */
export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
}

export interface Span {
  /** Undefined when nothing is recorded of the span, since its trace has too many. */
  readonly context: SpanContext | undefined
  /** Starts a span for a part of this one. */
  child(name: string, kind?: SpanKind): Span
  /**
   * Starts a span in a trace of its own, for work that several requests share. Undefined when
   * nothing is recorded of this span.
   */
  shared(name: string): Span | undefined
  set(name: string, value: SpanValue): void
  /** Points at a span of another trace. */
  link(other: SpanContext | undefined): void
  /** Called once, with the error that ended the work, if one did: its kind is recorded. */
  end(error?: unknown): void
}

/** Options of work that can be recorded. */
export interface Traced {
  /** The span that the work is a part of. */
  readonly span?: Span | undefined
}

/** Runs asynchronous work in a child span. */
export function recorded<T>(
  span: Span | undefined,
  name: string,
  work: (child: Span | undefined) => Promise<T>,
  kind?: SpanKind,
): Promise<T> {
  if (span === undefined) return work(undefined)
  return recordedAs(span.child(name, kind), work)
}

/** Runs synchronous work in a child span. */
export function recordedNow<T>(span: Span | undefined, name: string, work: () => T): T {
  if (span === undefined) return work()
  const child = span.child(name)
  try {
    const result = work()
    child.end()
    return result
  } catch (error) {
    child.end(error)
    throw error
  }
}

/** Runs asynchronous work in this span, and ends the span with it. */
export async function recordedAs<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    const result = await work(span)
    span.end()
    return result
  } catch (error) {
    span.end(error)
    throw error
  }
}

/**
 * The first span of a trace for work that many requests share. Undefined when none of them is
 * recorded.
 */
export function sharedBy(requests: readonly Traced[], name: string): Span | undefined {
  for (const { span } of requests) {
    const shared = span?.shared(name)
    if (shared !== undefined) return shared
  }
  return undefined
}
