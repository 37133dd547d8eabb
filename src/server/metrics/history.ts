import { Counter, Histogram, type Registry } from '@prometheus-io/client'
import { type Figure, registerFigure } from './figure.ts'

/**
 * Why changes are missing in history. `gap` counts gaps: etcd had compacted changes before they were
 * read, and nobody knows how many were of events that clients deleted.
 */
export const LOSSES = ['evicted', 'no-space', 'gap', 'unreadable'] as const
/** The steps of writing, in their order; the last one is merging and deleting files. */
export const WRITE_STEPS = ['encode', 'upload', 'publish', 'upkeep'] as const
/** `cut`: a part was served, since time ran out. */
export const QUERY_RESULTS = ['served', 'cut', 'timeout', 'refused', 'failed', 'cancelled'] as const
/** Whether a file that a query needs was there. */
export const CACHE_RESULTS = ['hit', 'miss'] as const

type HistoryLoss = (typeof LOSSES)[number]
type HistoryWriteStep = (typeof WRITE_STEPS)[number]
type HistoryQueryResult = (typeof QUERY_RESULTS)[number]
type HistoryCacheResult = (typeof CACHE_RESULTS)[number]

/** What a replica knows of history. Counts are since its start; sizes are undefined until they are known. */
export interface HistoryStatus {
  /** Whether this replica is elected to write. */
  readonly isWriter: boolean
  /** How long ago everything was archived, by the catalogue: the same on every replica. */
  readonly positionLagMs: number | undefined
  readonly archivedEvents: number
  readonly lostEvents: Readonly<Record<HistoryLoss, number>>
  readonly segments: number
  readonly segmentBytes: number
  readonly writeFailures: Readonly<Record<HistoryWriteStep, number>>
  /** Of all of history, by the catalogue. */
  readonly files: number | undefined
  readonly storedBytes: number | undefined
  /** How long ago the oldest event was last seen. */
  readonly oldestMs: number | undefined
  readonly readerRestarts: number
  readonly cacheBytes: number
  readonly cacheLimitBytes: number
  readonly cacheRequests: Readonly<Record<HistoryCacheResult, number>>
}

const FIGURES: readonly Figure<HistoryStatus>[] = [
  {
    name: 'tidings_history_writer_role',
    help: '1 on the replica that writes history, 0 on the others.',
    read: ({ isWriter }) => (isWriter ? 1 : 0),
  },
  {
    name: 'tidings_history_position_lag_seconds',
    help: 'How long ago history had every change; reported by every replica. Up to the segment interval is normal.',
    read: ({ positionLagMs }) => seconds(positionLagMs),
  },
  {
    name: 'tidings_history_archived_events_total',
    help: 'States of events that this replica has written to history.',
    isCounter: true,
    read: (status) => status.archivedEvents,
  },
  {
    name: 'tidings_history_segments_total',
    help: 'Segments that this replica has written: once per interval, or sooner when there are many changes.',
    isCounter: true,
    read: (status) => status.segments,
  },
  {
    name: 'tidings_history_segment_bytes_total',
    help: 'Bytes of the files of these segments, compressed.',
    isCounter: true,
    read: (status) => status.segmentBytes,
  },
  {
    name: 'tidings_history_files',
    help: 'Files with events in history; reported by every replica.',
    read: ({ files }) => files,
  },
  {
    name: 'tidings_history_stored_bytes',
    help: 'Bytes of these files; reported by every replica.',
    read: ({ storedBytes }) => storedBytes,
  },
  {
    name: 'tidings_history_oldest_seconds',
    help: 'How long ago the oldest event in history was last seen; reported by every replica.',
    read: ({ oldestMs }) => seconds(oldestMs),
  },
  {
    name: 'tidings_history_reader_restarts_total',
    help: 'How often the process that reads history has ended and was started again.',
    isCounter: true,
    read: (status) => status.readerRestarts,
  },
  {
    name: 'tidings_history_cache_bytes',
    help: 'Size of the copies of files in --history-cache-dir.',
    read: (status) => status.cacheBytes,
  },
  {
    name: 'tidings_history_cache_limit_bytes',
    help: 'Maximum of that size: --history-cache-bytes.',
    read: (status) => status.cacheLimitBytes,
  },
]

const COUNTERS: readonly {
  readonly name: string
  readonly help: string
  readonly label: string
  readonly read: (status: HistoryStatus) => Readonly<Record<string, number>>
}[] = [
  {
    name: 'tidings_history_lost_events_total',
    help: 'Events that are missing in history, by reason. Of a gap nobody knows how many there were: it counts as one.',
    label: 'reason',
    read: (status) => status.lostEvents,
  },
  {
    name: 'tidings_history_write_failures_total',
    help: 'Failed attempts to write history, by step. They are repeated.',
    label: 'step',
    read: (status) => status.writeFailures,
  },
  {
    name: 'tidings_history_cache_requests_total',
    help: 'Files that queries needed, by whether a copy was in the cache.',
    label: 'result',
    read: (status) => status.cacheRequests,
  },
]

export function registerHistoryMetrics(status: () => HistoryStatus, registry: Registry): void {
  for (const figure of FIGURES) {
    registerFigure(figure, () => figure.read(status()), registry, {})
  }
  for (const { name, help, label, read } of COUNTERS) {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset()
        for (const [value, count] of Object.entries(read(status()))) {
          this.inc({ [label]: value }, count)
        }
      },
    })
  }
}

const QUERY_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Observes queries of history, downloads included. */
export function historyQueryObserver(
  registry: Registry,
): (tookMs: number, result: HistoryQueryResult) => void {
  const registers = [registry]
  const queries = new Counter({
    name: 'tidings_history_queries_total',
    help: 'Queries of history, by result.',
    labelNames: ['result'],
    registers,
  })
  // Series from the start, so that `increase` sees the first failure.
  for (const result of QUERY_RESULTS) queries.inc({ result }, 0)
  const durations = new Histogram({
    name: 'tidings_history_query_duration_seconds',
    help: 'How long queries of history took, downloads included.',
    labelNames: ['result'],
    buckets: QUERY_SECONDS,
    registers,
  })
  return (tookMs, result) => {
    queries.inc({ result })
    durations.observe({ result }, tookMs / 1000)
  }
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000
}
