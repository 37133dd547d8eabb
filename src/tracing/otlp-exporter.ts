import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import type { SpanContext } from '../lib/tracing/span.ts'
import type { RecordedSpan } from './trace.ts'

/** How long one export may take. */
const EXPORT_MS_MAX = 5_000
const SCOPE = { name: 'tidings' }

export interface OtlpOptions {
  /** As in the configuration: `host:port`, or `unix:///path`. */
  readonly endpoint: string
  /** What sends the spans: its name, version and instance. */
  readonly resource: Readonly<Record<string, string>>
}

export interface OtlpExporter {
  /** Rejects when the collector did not take them. */
  send(spans: readonly RecordedSpan[]): Promise<void>
  close(): void
}

type ReadableSpan = Parameters<OTLPTraceExporter['export']>[0][number]

/**
 * Sends spans by OTLP over gRPC, without TLS, as a Kubernetes API server does. The packages are
 * loaded here and nowhere else: a server that does not trace has none of them in memory.
 */
export async function openOtlpExporter(options: OtlpOptions): Promise<OtlpExporter> {
  const [otlp, { resourceFromAttributes }, { credentials }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@opentelemetry/resources'),
    import('@grpc/grpc-js'),
  ])
  const { endpoint } = options
  const exporter = new otlp.OTLPTraceExporter({
    url: endpoint.startsWith('unix:') ? endpoint : `http://${endpoint}`,
    credentials: credentials.createInsecure(),
    timeoutMillis: EXPORT_MS_MAX,
  })
  const resource = resourceFromAttributes(options.resource)
  return {
    send: (spans) =>
      new Promise((resolve, reject) => {
        exporter.export(
          spans.map((span) => readable(span, resource)),
          ({ code, error }) => {
            if (code === SUCCESS) resolve()
            else reject(error ?? new Error('the collector refused the spans'))
          },
        )
      }),
    close: () => void exporter.shutdown().catch(() => {}),
  }
}

/** The numbers of @opentelemetry/api and core, which are part of their interfaces. */
const SUCCESS = 0
const KINDS = { internal: 0, server: 1, client: 2 } as const
const STATUS_UNSET = 0
const STATUS_ERROR = 2
const SAMPLED = 1

function readable(span: RecordedSpan, resource: ReadableSpan['resource']): ReadableSpan {
  const { context, parentSpanId, failure } = span
  const { traceId } = context
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => ({ ...context, traceFlags: SAMPLED }),
    ...(parentSpanId === undefined
      ? {}
      : { parentSpanContext: sampled({ traceId, spanId: parentSpanId }) }),
    startTime: highResolution(span.startMs),
    endTime: highResolution(span.endMs),
    duration: highResolution(span.endMs - span.startMs),
    status:
      failure === undefined ? { code: STATUS_UNSET } : { code: STATUS_ERROR, message: failure },
    attributes: span.values,
    links: span.links.map((link) => ({ context: sampled(link) })),
    events: [],
    ended: true,
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function sampled({ traceId, spanId }: SpanContext): ReturnType<ReadableSpan['spanContext']> {
  return { traceId, spanId, traceFlags: SAMPLED }
}

/** Seconds and nanoseconds. */
function highResolution(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
}
