/**
 * The jobs of the process with DuckDB. The server starts one such process that writes files and one
 * that reads them, so that a native library can take neither the server nor the other one down.
 */
import type { Requires } from '../../storage/requires.ts'
import type { EventKey, ListOrder } from '../../storage/storage.ts'
import type {
  EventHistogram,
  GroupField,
  SummaryGroup,
  SummaryOptions,
  TimeWindow,
} from '../../storage/summary.ts'
import type { DayFiles, EventFile } from '../manifest.ts'
import type { EngineErrorKind } from './engine-error.ts'

/** A change that is to be archived: the state of an event after it. */
export interface ArchivedChange {
  readonly key: EventKey
  readonly body: Uint8Array
  readonly trailer: Uint8Array
  readonly version: number
  readonly writtenAtMs: number
  /** The state before: only occurrences after it are new. `unknown`: the stream had a gap. */
  readonly previous:
    | { readonly body: Uint8Array; readonly trailer: Uint8Array }
    | { readonly unknownBeforeMs: number }
    | undefined
}

/**
 * Rows to leave out when files are merged or rewritten. Of several, the first whose `requires` a row
 * has decides for it.
 */
export interface Removal {
  readonly requires: Requires
  /** Rows that were last seen before go. */
  readonly seenBeforeMs: number
}

/** A file that was written to the folder of the process, not yet to the store. */
export interface WrittenFile {
  readonly cluster: string
  readonly date: string
  readonly path: string
  readonly rollupPath: string
  /** `name` of the file and of its rollup are final. */
  readonly file: EventFile
}

/** A change that cannot be archived, since its body is not an event. */
export interface RejectedChange {
  readonly key: EventKey
  readonly version: number
  readonly reason: string
}

export interface Appended {
  /** The other changes of the call are in the segment. */
  readonly rejected: readonly RejectedChange[]
}

export interface Merged {
  readonly written: WrittenFile | undefined
  readonly removedRows: number
}

/** What a call of a job may take. */
export interface CallOptions {
  /** The call rejects with the reason, and what runs is interrupted. */
  readonly signal?: AbortSignal | undefined
  /** From the call to its answer. Default: as long as the job may take at most. */
  readonly timeoutMs?: number | undefined
}

/**
 * The segment is in the memory of the process. If the process ends, it is gone: `append` and `flush`
 * then fail with `lost`, until `reset` begins a segment in the new process. `reset` is thus the first
 * call, and the first after any call that failed.
 */
export interface WriteJobs {
  /** Adds changes to the segment. A later change of the same event and day replaces the earlier. */
  append(changes: readonly ArchivedChange[], options?: CallOptions): Promise<Appended>
  /** Writes the segment, one file for each cluster and day, and begins the next one. */
  flush(sequence: number, options?: CallOptions): Promise<readonly WrittenFile[]>
  /** Discards the segment, and begins the next one. */
  reset(options?: CallOptions): Promise<void>
  /**
   * Writes the newest row of each event in these files of one cluster and day to one file. Undefined
   * when no row is left.
   */
  merge(
    day: Pick<DayFiles, 'cluster' | 'date'>,
    inputs: readonly InputFile[],
    removals: readonly Removal[],
    options?: CallOptions,
  ): Promise<Merged>
  /** Reads the files as a whole, and says what is not as their entries in the catalogue say. */
  check(files: readonly InputFile[], options?: CallOptions): Promise<readonly FaultyFile[]>
}

export interface FaultyFile {
  readonly name: string
  readonly faults: readonly string[]
}

/**
 * What a process can do, by the name of the job: the type of a `JobTable` says what each job is given
 * and what it returns.
 */
export type JobTypes<Jobs> = {
  readonly [Name in keyof Jobs]: (argument: never) => Promise<unknown>
}

/** The jobs of the writer as the process knows them. */
export interface WriterJobs {
  append(changes: PackedChanges): Promise<Appended>
  flush(sequence: number): Promise<readonly WrittenFile[]>
  reset(nothing: undefined): Promise<void>
  merge(argument: MergeArgument): Promise<Merged>
  check(files: readonly InputFile[]): Promise<readonly FaultyFile[]>
}

/** Changes in a message; see packed-changes.ts. */
export interface PackedChanges {
  /** Cluster, namespace and name of each. */
  readonly keys: readonly string[]
  /** Version, time of the write, and `unknownBeforeMs` of each: NaN if it has none. */
  readonly numbers: Float64Array
  /** Of the body and the trailer of each, and of its earlier state: 0 if it has none. */
  readonly lengths: Uint32Array
  /** One after the other. */
  readonly bytes: Uint8Array
}

export interface MergeArgument {
  readonly day: Pick<DayFiles, 'cluster' | 'date'>
  readonly inputs: readonly InputFile[]
  readonly removals: readonly Removal[]
}

export type EngineRole = 'writer' | 'reader'

/** The first message to a process. */
export interface EngineSettings {
  readonly role: EngineRole
  /** Absolute. The process writes below it: its results, and what exceeds its memory. */
  readonly folder: string
  /** Absolute. Where files are read, besides `folder`. */
  readonly readFolders: readonly string[]
  /** What DuckDB may hold in memory, and then on disk. */
  readonly memoryBytes: number
  readonly spillBytes: number
  readonly threads: number
  /** How many jobs run at a time. */
  readonly connections: number
}

export interface EngineCall {
  readonly id: number
  readonly job: string
  readonly argument: unknown
}

/** A message to a process, after the settings. `cancel` interrupts the call of that number. */
export type EngineRequest = EngineCall | { readonly cancel: number }

/** The answer to a call. `rss` is the memory of the process. */
export type EngineResponse = { readonly id: number; readonly rss: number } & (
  | { readonly result: unknown }
  | { readonly error: { readonly kind: EngineErrorKind; readonly message: string } }
)

/** A file and where it can be read. */
export interface InputFile {
  readonly cluster: string
  readonly date: string
  readonly path: string
  readonly rollupPath: string
  readonly file: EventFile
}

export interface ReadScope {
  readonly cluster: string | undefined
  readonly namespace: string | undefined
}

/** One page of a list, in the order of memory. The window of the list is that of `requires`. */
export interface PageQuery extends ReadScope {
  /** All files of each day that the window touches: a newer state of an event may be in any of them. */
  readonly files: readonly InputFile[]
  readonly requires: Requires | undefined
  readonly order: ListOrder
  /**
   * Start after this event. Two events with the same key differ by their uids: without `afterUid`, both
   * are passed.
   */
  readonly after: EventKey | undefined
  readonly afterUid?: string | undefined
  /**
   * When it was last seen; required by orders other than `key`. Alone: start with events that were
   * seen before that time, or with `oldest` from that time on.
   */
  readonly afterMs: number | undefined
  readonly limit: number
  /** A page ends before its JSON has more bytes, but has at least one event. */
  readonly bytesMax: number
  /** A search through days ends when it took longer. Default: it does not. */
  readonly budgetMs?: number | undefined
}

export interface PageResult {
  readonly events: readonly ArchivedEvent[]
  /** Otherwise the caller verifies each event against the selector. */
  readonly isExact: boolean
  /** Nothing follows. */
  readonly isEnd: boolean
  /**
   * Set when the time was up: all events that were last seen from then on are known, or with `oldest`
   * those before it. The list continues with `afterMs`, and without `after`.
   */
  readonly cutMs: number | undefined
}

/** The state of an event that is the newest of its day, and of the window of the list. */
export interface ArchivedEvent {
  readonly key: EventKey
  readonly uid: string
  /** As served, with its resourceVersion. */
  readonly json: Uint8Array
  readonly trailer: Uint8Array
  readonly version: number
  readonly writtenAtMs: number
  readonly lastSeenMs: number
}

/** What groups and buckets have in common. `requires` has no bounds of time. */
export interface CountsQuery extends ReadScope {
  /** All files that may have occurrences of the time that is asked for. */
  readonly files: readonly InputFile[]
  readonly requires: Requires | undefined
  /**
   * Rollups are read instead of events, where they can tell, if the files have more rows than this.
   * Default: none, so that they are read whenever they can tell.
   */
  readonly rowsMax?: number | undefined
}

/** How counts were computed. */
export interface CountsSource {
  readonly source: 'rows' | 'rollups'
  /** Otherwise rows are counted that the selector may not match. */
  readonly isExact: boolean
}

export interface GroupsQuery extends CountsQuery {
  readonly window: TimeWindow
  readonly newSince: TimeWindow | undefined
  readonly groupBy: readonly GroupField[]
  /** Default: groups with the most occurrences come first. */
  readonly order?: SummaryOptions['order']
  /** Groups that are returned at most: the first in that order. */
  readonly groupsMax: number
  /** Of their texts. Groups whose texts would be beyond are hidden, but the first is not. */
  readonly bytesMax: number
}

export interface GroupsResult extends CountsSource {
  readonly groups: readonly ArchivedGroup[]
  /** Groups that are not returned. */
  readonly hidden: number
}

/**
 * As in a summary. With `newSince`, also groups that occurred only then, after all others. From
 * rollups, the first occurrence is known by the hour, objects are not known, and nothing is known to be
 * estimated.
 */
export interface ArchivedGroup extends Omit<SummaryGroup, 'objects'> {
  readonly objects: number | undefined
}

export interface BucketsQuery extends CountsQuery {
  readonly bounds: readonly number[]
  readonly by: GroupField
  /** As in `HistogramOptions`. */
  readonly namesMax: number | undefined
}

export interface BucketsResult extends CountsSource {
  /**
   * As in a histogram, but from rollups `events` are those that began in the bucket, and nothing is
   * known to be estimated. Undefined when there are too many counts.
   */
  readonly buckets: EventHistogram['buckets'] | undefined
}

/** The jobs of the reader as the process knows them. */
export interface ReaderJobs {
  page(query: PageQuery): Promise<PageResult>
  groups(query: GroupsQuery): Promise<GroupsResult>
  buckets(query: BucketsQuery): Promise<BucketsResult>
}
