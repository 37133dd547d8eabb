/** Builds the tracing of requests from the options. */
import { hostname } from 'node:os'
import process from 'node:process'
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import type { Log } from '../../lib/log/log.ts'
import type { AuditOptions } from '../../options/audit-flags.ts'
import { withFlagName } from '../../options/flag-errors.ts'
import { replicaName } from '../../storage/etcd/control/control-values.ts'
import { headersFrom, OtlpExporter } from '../../tracing/otlp-exporter.ts'
import { SpanQueue } from '../../tracing/span-queue.ts'
import { Tracer } from '../../tracing/tracer.ts'
import { loadTracingConfig } from '../../tracing/tracing-config.ts'
import { releaseVersion } from '../build-info.ts'

/** A collector that does not respond must not delay a stop for longer. */
const CLOSE_MS_MAX = 3_000
const SERVICE = 'tidings'

export interface Tracing {
  readonly tracer: Tracer
  /** Sends the recorded spans, within a time limit. */
  close(): Promise<void>
}

/**
 * Undefined when tracing is off. Rejects when the file or a header for the collector cannot be
 * used; the error names the flag or the variable. A collector that is down is not an error: spans
 * are dropped until it is up.
 */
export async function openTracing(
  { tracingConfigFile }: Pick<AuditOptions, 'tracingConfigFile'>,
  log: Log,
  registry: Registry,
): Promise<Tracing | undefined> {
  if (tracingConfigFile === undefined) return undefined
  const config = await withFlagName('--tracing-config-file', loadTracingConfig(tracingConfigFile))
  const { endpoint, samplingRatePerMillion } = config
  // biome-ignore lint/style/noProcessEnv: these are settings of OpenTelemetry, not ours.
  const { OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TRACES_HEADERS } = process.env
  const exporter = new OtlpExporter({
    endpoint,
    headers: {
      ...headersFrom('OTEL_EXPORTER_OTLP_HEADERS', OTEL_EXPORTER_OTLP_HEADERS),
      ...headersFrom('OTEL_EXPORTER_OTLP_TRACES_HEADERS', OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
    resource: {
      'service.name': SERVICE,
      'service.version': releaseVersion(),
      'service.instance.id': replicaName(hostname(), process.pid),
    },
  })
  const queue = new SpanQueue({
    send: (spans) => exporter.send(spans),
    onFailing: (err) => log.warn('Spans cannot be exported and are dropped', { err, endpoint }),
    onRecovered: (lost) => log.info('Spans are exported again', { lost, endpoint }),
  })
  const tracer = new Tracer({ samplingRatePerMillion, onSpan: (span) => queue.add(span) })
  registerTracingMetrics(queue, tracer, registry)
  log.info('Tracing requests', { endpoint, samplingRatePerMillion })
  return {
    tracer,
    close: async () => {
      await queue.close(CLOSE_MS_MAX)
      exporter.close()
    },
  }
}

/** Metrics of the export, read from it at each scrape. */
export function registerTracingMetrics(queue: SpanQueue, tracer: Tracer, registry: Registry): void {
  const registers = [registry]
  new Counter({
    name: 'tidings_tracing_spans_exported_total',
    help: 'Spans that the trace collector has accepted.',
    registers,
    collect() {
      this.reset()
      this.inc(queue.counts.sent)
    },
  })
  new Counter({
    name: 'tidings_tracing_spans_dropped_total',
    help: 'Spans that were dropped: queue (too many were waiting to be exported), export (the collector rejected or did not receive them), trace (too many in one trace).',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      this.inc({ reason: 'queue' }, queue.counts.refused)
      this.inc({ reason: 'export' }, queue.counts.lost)
      this.inc({ reason: 'trace' }, tracer.omitted)
    },
  })
  new Gauge({
    name: 'tidings_tracing_waiting_spans',
    help: 'Spans waiting to be exported.',
    registers,
    collect() {
      this.set(queue.waiting)
    },
  })
}
