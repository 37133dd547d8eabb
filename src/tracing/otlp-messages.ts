/**
 * OTLP's ExportTraceServiceRequest (opentelemetry/proto/trace/v1/trace.proto) and its response
 * (opentelemetry/proto/collector/trace/v1/trace_service.proto).
 */
import { BackwardWriter, Reader } from '../lib/protobuf.ts'
import type { SpanContext, SpanValue } from '../lib/tracing/span.ts'
import type { RecordedSpan } from './trace.ts'

const SCOPE = 'tidings'
const KINDS = { internal: 1, server: 2, client: 3 } as const
const STATUS_ERROR = 2
/** A value of a oneof is sent even if it is the default. */
const always = { always: true } as const

export function encodeSpans(
  spans: readonly RecordedSpan[],
  resource: Readonly<Record<string, SpanValue>>,
): Buffer {
  const writer = new BackwardWriter(64 * 1024)
  nested(writer, 1, () => {
    nested(writer, 2, () => {
      for (const span of spans.toReversed()) nested(writer, 2, () => writeSpan(writer, span))
      nested(writer, 1, () => writeText(writer, 1, SCOPE))
    })
    nested(writer, 1, () => writeAttributes(writer, 1, resource))
  })
  return writer.finish()
}

/** The number of spans that the collector rejected: `partial_success.rejected_spans`. */
export function decodeRejectedSpans(response: Buffer): number {
  const reader = new Reader(response)
  let rejected = 0
  while (reader.next()) {
    if (reader.field !== 1) {
      reader.skip()
      continue
    }
    const outer = reader.enter()
    while (reader.next()) {
      if (reader.field === 1) rejected = reader.number()
      else reader.skip()
    }
    reader.leave(outer)
  }
  return rejected
}

function writeSpan(writer: BackwardWriter, span: RecordedSpan): void {
  const { context, parentSpanId, failure } = span
  if (failure !== undefined) {
    nested(writer, 15, () => {
      writer.number(3, STATUS_ERROR)
      writeText(writer, 2, failure)
    })
  }
  for (const link of span.links.toReversed()) nested(writer, 13, () => writeIds(writer, link))
  writeAttributes(writer, 9, span.values)
  writer.fixed64(8, nanoseconds(span.endMs))
  writer.fixed64(7, nanoseconds(span.startMs))
  writer.number(6, KINDS[span.kind])
  writeText(writer, 5, span.name)
  if (parentSpanId !== undefined) writer.bytes(4, Buffer.from(parentSpanId, 'hex'))
  writeIds(writer, context)
}

function writeIds(writer: BackwardWriter, { traceId, spanId }: SpanContext): void {
  writer.bytes(2, Buffer.from(spanId, 'hex'))
  writer.bytes(1, Buffer.from(traceId, 'hex'))
}

function writeAttributes(
  writer: BackwardWriter,
  field: number,
  values: Readonly<Record<string, SpanValue>>,
): void {
  for (const [key, value] of Object.entries(values).toReversed()) {
    nested(writer, field, () => {
      nested(writer, 2, () => writeValue(writer, value))
      writeText(writer, 1, key)
    })
  }
}

function writeValue(writer: BackwardWriter, value: SpanValue): void {
  if (typeof value === 'string') writer.bytes(1, Buffer.from(value), always)
  else if (typeof value === 'boolean') writer.number(2, value ? 1 : 0, always)
  else writer.number(3, BigInt(Math.round(value)), always)
}

function writeText(writer: BackwardWriter, field: number, text: string): void {
  writer.bytes(field, Buffer.from(text))
}

function nested(writer: BackwardWriter, field: number, write: () => void): void {
  const mark = writer.mark()
  write()
  writer.message(field, mark)
}

/** The product would not fit a double exactly. */
function nanoseconds(ms: number): bigint {
  const whole = Math.floor(ms)
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6))
}
