/** Rows of the dashboard about what runs beside requests: mirrors, files, the process. */
import { one, type Row, rateBy } from './panel.ts'

export const MIRRORS: Row = {
  title: 'Mirrors',
  panels: [
    {
      title: 'State',
      description:
        'State of each mirror: Waiting, Syncing, Following or Stalled. Runbook: TidingsMirrorStalled.',
      unit: 'short',
      queries: one('max by (cluster, state) (tidings_mirror_state{S})', '{{cluster}} {{state}}'),
    },
    {
      title: 'Mirror lag',
      description: 'How long ago the mirror last had everything that the cluster had.',
      unit: 's',
      limits: [10, 60],
      queries: one('max by (cluster) (tidings_mirror_lag_seconds{S})', '{{cluster}}'),
    },
    {
      title: 'Events by result',
      description:
        'too-large, invalid and unreadable were dropped. Runbook: TidingsMirrorDropsEvents.',
      unit: 'ops',
      queries: rateBy('cluster, result', 'tidings_mirror_events_total'),
    },
    {
      title: 'Failed requests to the cluster',
      description:
        'expired: the mirror lists again; unavailable: it retries; refused: an operator has to act.',
      unit: 'ops',
      queries: rateBy('cluster, kind', 'tidings_mirror_origin_failures_total'),
    },
    {
      title: 'Lists, watches and repeated writes',
      description:
        'Lists are normal only at a start; fenced writes are those of a replica that lost an election.',
      unit: 'ops',
      queries: [
        ...one(
          'sum by (cluster) (rate(tidings_mirror_lists_total{S}[$__rate_interval]))',
          '{{cluster}} lists',
        ),
        ...one(
          'sum by (cluster) (rate(tidings_mirror_watches_total{S}[$__rate_interval]))',
          '{{cluster}} watches',
        ),
        ...one(
          'sum by (cluster) (rate(tidings_mirror_retries_total{S}[$__rate_interval]))',
          '{{cluster}} retries',
        ),
        ...one(
          'sum by (cluster) (rate(tidings_mirror_throttled_total{S}[$__rate_interval]))',
          '{{cluster}} throttled',
        ),
        ...one(
          'sum by (cluster) (rate(tidings_mirror_fenced_writes_total{S}[$__rate_interval]))',
          '{{cluster}} fenced',
        ),
      ],
    },
    {
      title: 'Owners followed',
      description:
        'With owners: true, 1 for each resource whose owners the mirror follows. Runbook: TidingsMirrorOwnersUnknown.',
      unit: 'short',
      queries: one(
        'max by (cluster, resource) (tidings_mirror_owners_following{S})',
        '{{cluster}} {{resource}}',
      ),
    },
    {
      title: 'Which replica mirrors which cluster',
      description: '1 on the replica that was elected for the cluster.',
      unit: 'short',
      isStacked: true,
      queries: one('tidings_mirror_role{S} == 1', '{{cluster}} {{instance}}'),
    },
  ],
}

export const PROCESS: Row = {
  title: 'Process, files, audit log and traces',
  panels: [
    {
      title: 'Event loop busy',
      description:
        'Above 90 % every request to the replica is slow. Runbook: TidingsEventLoopBusy.',
      unit: 'percentunit',
      limits: [0.7, 0.9],
      queries: one('rate(nodejs_eventloop_active_seconds_total{S}[$__rate_interval])'),
    },
    {
      title: 'CPU',
      description: 'Cores in use, including garbage collection and TLS on other threads.',
      unit: 'short',
      queries: one('rate(process_cpu_seconds_total{S}[$__rate_interval])'),
    },
    {
      title: 'Event loop delay, 99th percentile',
      description: 'How long the loop was blocked without a break, since the last scrape.',
      unit: 's',
      limits: [0.05, 0.25],
      queries: one('nodejs_eventloop_lag_p99_seconds{S}'),
    },
    {
      title: 'Wait for a time slice, 99th percentile',
      description:
        'How long searches and encodings of users waited for others at each step; tidings_run_queue_users is the number of users that took turns.',
      unit: 's',
      limits: [0.1, 1],
      queries: [
        ...one(
          'histogram_quantile(0.99, sum by (le) (rate(tidings_run_queue_wait_seconds_bucket{S}[$__rate_interval])))',
          'waited',
        ),
      ],
    },
    {
      title: 'Work waiting for a time slice',
      description:
        'Searches and encodings, the users who compete, and turns of the event loop with slices.',
      unit: 'short',
      queries: [
        ...one('max(tidings_run_queue_waiting{S})', 'waiting'),
        ...one('max(tidings_run_queue_users{S})', 'users'),
        ...one('max(rate(tidings_run_queue_turns_total{S}[$__rate_interval]))', 'turns/s'),
      ],
    },
    {
      title: 'Garbage collection',
      description: 'Seconds per second, by kind.',
      unit: 'percentunit',
      queries: rateBy('kind', 'nodejs_gc_duration_seconds_sum'),
    },
    {
      title: 'File descriptors in use',
      description: 'Nearly all are connections. Runbook: TidingsOpenFiles.',
      unit: 'percentunit',
      limits: [0.6, 0.8],
      queries: one('process_open_fds{S} / process_max_fds{S}'),
    },
    {
      title: 'Running for',
      description: 'Time since the start of each process. Runbook: TidingsRestarts.',
      unit: 's',
      queries: one('time() - process_start_time_seconds{S}'),
    },
    {
      title: 'Builds',
      description: 'Which replica runs which version. Runbook: TidingsVersionsDiffer.',
      unit: 'none',
      isTable: true,
      queries: one('count by (instance, version, commit, node) (tidings_build_info{S})', ''),
    },
    {
      title: 'Certificates expire in',
      isSigned: true,
      description: 'By flag, the first certificate to expire. Runbook: TidingsCertificateExpires.',
      unit: 's',
      queries: one(
        'min by (flag) (tidings_certificate_expiration_timestamp_seconds{S}) - time()',
        '{{flag}}',
      ),
    },
    {
      title: 'Files in use',
      description:
        'By flag: 0 while the content of a file is invalid, and the time since it was last valid. Runbook: TidingsFileNotInUse.',
      unit: 'short',
      queries: [
        ...one('min by (flag) (tidings_file_last_reload_successful{S})', '{{flag}} in use'),
        ...one(
          'max by (flag) (timestamp(tidings_file_last_reload_success_timestamp_seconds{S}) - tidings_file_last_reload_success_timestamp_seconds{S})',
          '{{flag}} seconds',
        ),
      ],
    },
    {
      title: 'Audit log',
      description: 'Lines written, lost, failed, or only counted. Runbook: TidingsAuditFails.',
      unit: 'ops',
      queries: [
        ...one('sum(rate(apiserver_audit_event_total{S}[$__rate_interval]))', 'lines'),
        ...one('sum(rate(apiserver_audit_error_total{S}[$__rate_interval]))', 'failed'),
        ...one('sum(rate(tidings_audit_lost_total{S}[$__rate_interval]))', 'lost'),
        ...one('sum(rate(tidings_audit_omitted_total{S}[$__rate_interval]))', 'only counted'),
      ],
    },
    {
      title: 'Audit lines waiting',
      description: 'More than a few KiB for longer than a scrape: a slow disk.',
      unit: 'bytes',
      queries: one('tidings_audit_waiting_bytes{S}'),
    },
    {
      title: 'Spans',
      description:
        'Exported spans, and dropped ones by reason; the collector is then slow or down.',
      unit: 'ops',
      queries: [
        ...one('sum(rate(tidings_tracing_spans_exported_total{S}[$__rate_interval]))', 'exported'),
        ...one(
          'sum by (reason) (rate(tidings_tracing_spans_dropped_total{S}[$__rate_interval]))',
          'dropped: {{reason}}',
        ),
      ],
    },
    {
      title: 'Spans waiting',
      description: 'Spans queued for export. The queue holds 4096.',
      unit: 'short',
      queries: one('tidings_tracing_waiting_spans{S}'),
    },
  ],
}
