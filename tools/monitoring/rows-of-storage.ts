/** Rows of the dashboard about where events are stored: memory, etcd, retention, history. */
import { one, quantile, type Row, rateBy } from './panel.ts'

export const MEMORY: Row = {
  title: 'Memory and cache',
  panels: [
    {
      title: 'Resident memory',
      description:
        'Memory of each process, and its limit: --memory-limit, the control group or the machine. How to size it: docs/how-to/size.md.',
      unit: 'bytes',
      queries: [
        ...one('process_resident_memory_bytes{S}'),
        ...one('min(tidings_memory_limit_bytes{S,part="all"})', 'limit'),
      ],
    },
    {
      title: 'Parts of the cache',
      description:
        'Live events, recent changes for watchers, encoded parts of lists, known owners (at most 16 MiB); the largest replica. The bounds of the others: tidings_memory_limit_bytes. Runbook: TidingsEventsFillMemory.',
      unit: 'bytes',
      isStacked: true,
      queries: [
        ...one('max(tidings_memory_event_bytes{S})', 'events'),
        ...one('max(tidings_history_bytes{S})', 'changes'),
        ...one('max(tidings_list_kept_bytes{S})', 'lists'),
        ...one('max(tidings_known_owners_bytes{S})', 'owners'),
      ],
    },
    {
      title: 'Known owners',
      description:
        'Objects whose owner is known from events or owner references, and how many per second are forgotten because all take more than 16 MiB: the workloads of their events are then told by names.',
      unit: 'short',
      queries: [
        ...one('tidings_known_owners{S}', '{{instance}} known'),
        ...one(
          'rate(tidings_known_owners_evicted_total{S}[$__rate_interval])',
          '{{instance}} forgotten/s',
        ),
      ],
    },
    {
      title: "Heap and V8's external memory",
      description: 'Events are stored outside the heap.',
      unit: 'bytes',
      queries: [
        ...one('nodejs_heap_size_used_bytes{S}', '{{instance}} heap'),
        ...one('nodejs_external_memory_bytes{S}', '{{instance}} external'),
      ],
    },
    {
      title: 'Memory held for clients',
      description:
        'By kind, of all replicas; the limit is for one replica and does not count watches. Runbook: TidingsClientMemoryFull.',
      unit: 'bytes',
      queries: [
        ...one('sum by (kind) (tidings_client_memory_bytes{S})', '{{kind}}'),
        ...one('max(tidings_client_memory_limit_bytes{S})', 'limit of a replica'),
      ],
    },
    {
      title: 'Recent changes for watchers',
      description: 'A watch that resumes from an older change is served from etcd.',
      unit: 'short',
      queries: [
        ...one('max(tidings_history_changes{S})', 'kept'),
        ...one('max(apiserver_watch_cache_capacity{S})', 'at most'),
      ],
    },
    {
      title: 'Cache hits',
      description:
        'Consistent reads by whether the cache served them, and reused encoded parts of lists.',
      unit: 'ops',
      queries: [
        ...one(
          'sum by (success) (rate(apiserver_watch_cache_consistent_read_total{S}[$__rate_interval]))',
          'consistent reads, by cache: {{success}}',
        ),
        ...one('sum(rate(tidings_list_kept_finds_total{S}[$__rate_interval]))', 'parts of lists'),
      ],
    },
  ],
}

export const ETCD: Row = {
  title: 'etcd',
  panels: [
    {
      title: 'Calls, 99th percentile',
      description: 'By operation, retries included. Writes wait for the disks of a majority.',
      unit: 's',
      limits: [0.1, 1],
      queries: quantile(0.99, { histogram: 'etcd_request_duration_seconds', by: 'operation' }),
    },
    {
      title: 'Calls and failures',
      description: 'Calls per second by operation, and those that failed.',
      unit: 'ops',
      queries: [
        ...rateBy('operation', 'etcd_request_duration_seconds_count'),
        ...one(
          'sum by (operation) (rate(etcd_request_errors_total{S}[$__rate_interval]))',
          '{{operation}} failed',
        ),
      ],
    },
    {
      title: 'Quota in use',
      description:
        'Write limits are reduced above 50 %; all writes are refused at 80 %. Runbook: TidingsEtcdFillsUp.',
      unit: 'percentunit',
      limits: [0.5, 0.8],
      queries: one('tidings_etcd_quota_used_ratio{S}'),
    },
    {
      title: 'Unavailable or full',
      description:
        'Seconds since etcd responded, number of outages, and 1 while it is full. Runbook: TidingsEtcdAway, TidingsEtcdFull.',
      unit: 'short',
      queries: [
        ...one('tidings_etcd_away_seconds{S}', '{{instance}} seconds away'),
        ...one('increase(tidings_etcd_outages_total{S}[$__rate_interval])', '{{instance}} outages'),
        ...one('tidings_etcd_no_space{S}', '{{instance}} full'),
      ],
    },
    {
      title: 'Writes waiting for a transaction',
      description: 'If this does not return to 0, etcd is the bottleneck.',
      unit: 'short',
      queries: one('tidings_waiting_writes{S}'),
    },
    {
      title: 'Size of the waiting writes',
      description: 'Events that clients have sent and etcd does not have yet.',
      unit: 'bytes',
      queries: one('tidings_waiting_writes_bytes{S}'),
    },
    {
      title: 'Writes per transaction',
      description:
        'Writes share transactions under load; a median of 1 means that there is little load.',
      unit: 'short',
      queries: quantile(0.5, { histogram: 'tidings_commit_operations', by: 'instance' }),
    },
    {
      title: 'Values that cannot be read',
      description: 'Values under event keys that are not events. Runbook: TidingsUnreadableValues.',
      unit: 'short',
      limits: [1, 10],
      queries: one('max by (fault) (tidings_unreadable_values{S})', '{{fault}}'),
    },
  ],
}

export const RETENTION: Row = {
  title: 'Retention and budgets',
  panels: [
    {
      title: 'Deleted by retention',
      description: 'Expired events by rule, and events that a budget evicted.',
      unit: 'ops',
      isStacked: true,
      queries: [
        ...one(
          'sum by (rule) (rate(tidings_swept_events_total{S}[$__rate_interval]))',
          'expired: {{rule}}',
        ),
        ...one(
          'sum by (budget) (rate(tidings_evicted_events_total{S}[$__rate_interval]))',
          'evicted: {{budget}}',
        ),
      ],
    },
    {
      title: 'Most overdue event',
      description: 'How long ago it expired. Above a minute: runbook, TidingsSweepsLate.',
      unit: 's',
      limits: [30, 60],
      queries: one('tidings_sweep_lag_seconds{S}'),
    },
    {
      title: 'Sweeper',
      description: '1 on the replica that sweeps. None for a minute: runbook, TidingsNoSweeper.',
      unit: 'short',
      isStacked: true,
      queries: one('tidings_sweeper_role{S}'),
    },
    {
      title: 'Compactions',
      description: "How often etcd's history was compacted in ten minutes.",
      unit: 'short',
      queries: one('sum(increase(tidings_compactions_total{S}[10m]))', 'compactions'),
    },
    {
      title: 'Clocks',
      isSigned: true,
      description:
        "How far each wall clock is ahead of the sweeper's, and how much longer events stay because their age is not proved.",
      unit: 's',
      queries: [
        ...one('tidings_clock_skew_seconds{S}', '{{instance}} ahead'),
        ...one('tidings_sweep_unproved_seconds{S}', '{{instance}} unproved'),
      ],
    },
    {
      title: 'Retention policies in use',
      description:
        'Replicas by the fingerprint of their policy: there should be one. Runbook: TidingsPoliciesDiffer.',
      unit: 'short',
      isStacked: true,
      queries: one('count by (fingerprint) (tidings_retention_policy_info{S})', '{{fingerprint}}'),
    },
  ],
}

export const HISTORY: Row = {
  title: 'History',
  panels: [
    {
      title: 'Behind the newest change',
      description:
        'How long ago history had every change. Rises to the segment interval, then drops. Runbook: TidingsHistoryLagging.',
      unit: 's',
      limits: [1800, 3600],
      queries: one('min(tidings_history_position_lag_seconds{S})', 'lag'),
    },
    {
      title: 'Writer of history',
      description: '1 on the replica that writes history.',
      unit: 'short',
      isStacked: true,
      queries: one('tidings_history_writer_role{S}'),
    },
    {
      title: 'Archived and lost events',
      description:
        'States written to history, and changes that are missing there. Runbook: TidingsHistoryLosingEvents.',
      unit: 'ops',
      queries: [
        ...one('sum(rate(tidings_history_archived_events_total{S}[$__rate_interval]))', 'archived'),
        ...one(
          'sum by (reason) (rate(tidings_history_lost_events_total{S}[$__rate_interval]))',
          'lost: {{reason}}',
        ),
      ],
    },
    {
      title: 'Failed writes of history',
      description: 'By step; each is repeated. Runbook: TidingsHistoryWritesFailing.',
      unit: 'ops',
      queries: rateBy('step', 'tidings_history_write_failures_total'),
    },
    {
      title: 'Segments',
      description: 'Segments written in an hour, and the bytes of their files.',
      unit: 'short',
      queries: [
        ...one('sum(increase(tidings_history_segments_total{S}[1h]))', 'segments'),
        ...one('sum(increase(tidings_history_segment_bytes_total{S}[1h]))', 'bytes'),
      ],
    },
    {
      title: 'Size of history',
      description: 'Bytes of all files with events.',
      unit: 'bytes',
      queries: one('max(tidings_history_stored_bytes{S})', 'bytes'),
    },
    {
      title: 'Files of history',
      description: 'Falls when files of a day are merged.',
      unit: 'short',
      queries: one('max(tidings_history_files{S})', 'files'),
    },
    {
      title: 'Oldest event of history',
      description: 'How far back history goes: docs/how-to/retention.md#history.',
      unit: 's',
      queries: one('max(tidings_history_oldest_seconds{S})', 'age'),
    },
    {
      title: 'Queries of history',
      description:
        'By result. refused: too many at once; timeout: longer than --history-query-timeout.',
      unit: 'ops',
      queries: rateBy('result', 'tidings_history_queries_total'),
    },
    {
      title: 'Duration of queries of history, 99th percentile',
      description: 'By result, downloads included.',
      unit: 's',
      queries: quantile(0.99, {
        histogram: 'tidings_history_query_duration_seconds',
        by: 'result',
      }),
    },
    {
      title: 'Cache of history',
      description:
        'Copies of files from the bucket, and their maximum. Runbook: TidingsHistoryCacheThrashing.',
      unit: 'bytes',
      queries: [
        ...one('tidings_history_cache_bytes{S}'),
        ...one('min(tidings_history_cache_limit_bytes{S})', 'limit'),
      ],
    },
    {
      title: 'Files that queries needed',
      description: 'A hit was in the cache; a miss had to be downloaded first.',
      unit: 'ops',
      queries: rateBy('result', 'tidings_history_cache_requests_total'),
    },
    {
      title: 'Restarts of the reader',
      description:
        'Ends of the process that reads history, in an hour. Runbook: TidingsHistoryReaderRestarting.',
      unit: 'short',
      queries: one('increase(tidings_history_reader_restarts_total{S}[1h])'),
    },
  ],
}
