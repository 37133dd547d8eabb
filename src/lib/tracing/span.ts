/**
 * The spans of a traced request. A request that is not traced has no span: whatever takes a span also
 * takes `undefined`, which costs one comparison.
 *
 * Names and values are our own words and numbers. Bodies, credentials and other text from a client
 * never get into a span, with three exceptions for clients with valid credentials: the audit id, the
 * namespace if it is a DNS label, and the link to the client's span.
 */

export type SpanValue = string | number | boolean

/** Whether the work is done here (`internal`) or by another program. */
export type SpanKind = 'internal' | 'client'

/** The identity of a span, for links. */
export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
}

export interface Span {
  /** Undefined when the span is not recorded because its trace has too many. */
  readonly context: SpanContext | undefined
  child(name: string, kind?: SpanKind): Span
  /**
   * Starts a span in a new trace for work that several requests share. Undefined when this span is
   * not recorded.
   */
  shared(name: string): Span | undefined
  set(name: string, value: SpanValue): void
  link(other: SpanContext | undefined): void
  /** Must be called once, with the error that ended the work, if any; its kind is recorded. */
  end(error?: unknown): void
}

export interface Traced {
  /** The parent span. */
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
 * The first span of a trace for work that many requests share; undefined when none of them is
 * recorded.
 */
export function sharedBy(requests: readonly Traced[], name: string): Span | undefined {
  for (const { span } of requests) {
    const shared = span?.shared(name)
    if (shared !== undefined) return shared
  }
  return undefined
}
