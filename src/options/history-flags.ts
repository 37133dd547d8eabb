import { type FlagTable, noEffectWithout, type Rule } from './flag.ts'
import { byteQuantity, duration, integer, optionalPath } from './kinds.ts'
import { optionalArchive } from './values.ts'

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

/** Events in files. Without `history` there is none, and the others are at their defaults. */
export interface HistoryOptions {
  /** `file:///path` or `s3://bucket/prefix`, without a slash at the end. */
  readonly history: string | undefined
  /** Undefined for a temporary folder. */
  readonly historyCacheDir: string | undefined
  readonly historyCacheBytes: number
  readonly historySegmentIntervalMs: number
  readonly historySegmentBytes: number
  readonly historyReaderMemoryBytes: number
  readonly historyReaderThreads: number
  readonly historyQueryTimeoutMs: number
}

/** With less, files would have so few events that their ends take most of the space. */
const SEGMENT_INTERVAL_MS_MIN = 1_000
const SEGMENT_INTERVAL_MS_MAX = 86_400_000
const THREADS_MAX = 64

export const historyFlags: FlagTable<HistoryOptions> = {
  history: {
    name: 'history',
    topic: 'History',
    kind: optionalArchive,
    default: undefined,
    help: 'Directory or bucket in which events are archived when they are written, and from which lists, summaries and histograms of earlier times are read: file:///path or s3://bucket/prefix. All replicas need the same one. Region, endpoint and credentials of a bucket come from the environment, as in the programs of AWS. Without it, events are gone when they expire.',
  },
  historyCacheDir: {
    name: 'history-cache-dir',
    topic: 'History',
    kind: optionalPath,
    default: undefined,
    help: 'Folder for copies of files from a bucket, and for files that are being written. Each replica needs its own. Default: a new temporary folder, which is deleted when tidings stops.',
  },
  historyCacheBytes: {
    name: 'history-cache-bytes',
    topic: 'History',
    kind: byteQuantity({ min: 256 * MIB }),
    default: 10 * GIB,
    help: 'Maximum size of --history-cache-dir, such as 10Gi, at least 256Mi. The files that were not read for the longest time are deleted first. A history in a directory is read in place, without copies.',
  },
  historySegmentIntervalMs: {
    name: 'history-segment-interval',
    topic: 'History',
    kind: duration({ positive: true }),
    default: 900_000,
    help: 'How often changes are written to history, from 1s to 24h. Until then an event is only in etcd, where it stays even after it has expired.',
  },
  historySegmentBytes: {
    name: 'history-segment-bytes',
    topic: 'History',
    kind: byteQuantity({ min: MIB, max: GIB }),
    default: 64 * MIB,
    help: 'Bytes of events after which changes are written to history before the interval ends, from 1Mi to 1Gi. They are held in memory until then.',
  },
  historyReaderMemoryBytes: {
    name: 'history-reader-memory',
    topic: 'History',
    kind: byteQuantity({ min: 128 * MIB }),
    default: 512 * MIB,
    help: 'Memory for queries of history, which run in a process of their own, at least 128Mi. What does not fit is written to --history-cache-dir. It is a part of the memory limit, with 608 MiB for writing and for the processes themselves.',
  },
  historyReaderThreads: {
    name: 'history-reader-threads',
    topic: 'History',
    kind: integer({ min: 1, max: THREADS_MAX }),
    default: 1,
    help: `Threads that each query of history may use, from 1 to ${THREADS_MAX}.`,
  },
  historyQueryTimeoutMs: {
    name: 'history-query-timeout',
    topic: 'History',
    kind: duration({ positive: true }),
    default: 10_000,
    help: 'Maximum duration of a query of history, downloads included, after which the request fails with a timeout.',
  },
}

const HISTORY_ONLY = [
  'historyCacheDir',
  'historyCacheBytes',
  'historySegmentIntervalMs',
  'historySegmentBytes',
  'historyReaderMemoryBytes',
  'historyReaderThreads',
  'historyQueryTimeoutMs',
] as const satisfies readonly (keyof HistoryOptions)[]

export const historyRules: readonly Rule<HistoryOptions>[] = [
  ...HISTORY_ONLY.map((option) => noEffectWithout(historyFlags, option, 'history')),
  {
    about: ['historySegmentIntervalMs'],
    check: ({ historySegmentIntervalMs: ms }) =>
      ms >= SEGMENT_INTERVAL_MS_MIN && ms <= SEGMENT_INTERVAL_MS_MAX
        ? undefined
        : '--history-segment-interval is out of range: write a duration between 1s and 24h',
  },
]
