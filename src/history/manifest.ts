/**
 * The catalogue of the archive: which files exist, and what is in them. A manifest and the lists of
 * days that it names are never changed; a key in etcd points to the current one.
 */
import type { Version } from '../storage/resource-version.ts'

/** Both ends are included. */
export type Bounds<T> = readonly [from: T, to: T]

/** A file in the store, and how to check it. */
export interface StoredFile {
  /** The path below the root of the archive, with slashes. */
  readonly name: string
  readonly bytes: number
  /** SHA-256 in hex. */
  readonly sha256: string
}

/** A Parquet file with events of one cluster that were last seen on one day. */
export interface EventFile extends StoredFile {
  readonly rows: number
  readonly sequences: Bounds<number>
  /** When the events of the rows were last seen, in milliseconds since 1970. */
  readonly seen: Bounds<number>
  /** When the occurrences of the rows were. */
  readonly occurred: Bounds<number>
  readonly namespaces: Bounds<string>
  readonly kinds: Bounds<string>
  readonly objects: Bounds<string>
  /** The occurrences of exactly these rows by hour. */
  readonly rollup: StoredFile
  /** Identifies what the policy has removed from the file. Undefined: nothing. */
  readonly removed?: string | undefined
}

/** All files of one cluster and day. */
export interface DayFiles {
  readonly cluster: string
  /** `YYYY-MM-DD` in UTC: the day when the events of the rows were last seen. */
  readonly date: string
  readonly files: readonly EventFile[]
}

/** What the manifest itself says of a day. Its list is read only when the day is. */
export interface Day {
  readonly cluster: string
  readonly date: string
  /** The encoded `DayFiles`. */
  readonly list: StoredFile
  readonly files: number
  readonly rows: number
  readonly bytes: number
  readonly seen: Bounds<number>
  readonly occurred: Bounds<number>
  /** As in all of its files, if they have the same. */
  readonly removed?: string | undefined
}

export interface Manifest {
  readonly form: 1
  /** Counts manifests, and numbers the segments. */
  readonly sequence: number
  /** Every change up to this version is in the archive, is not to be archived, or was lost. */
  readonly position: Version
  /** The wall clock when the writer had read up to the position. */
  readonly positionAtMs: number
  /** Sorted by cluster and date. */
  readonly days: readonly Day[]
  /** Objects that an earlier manifest named: they are not deleted for a day. */
  readonly removed: readonly RemovedObject[]
  /** What was removed on request, newest last. */
  readonly purges: readonly Purge[]
}

export interface RemovedObject {
  readonly name: string
  readonly atMs: number
}

export interface Purge {
  readonly atMs: number
  readonly by: string
  readonly cluster: string
  readonly namespace: string
  readonly beforeMs?: number | undefined
  readonly rows: number
}

/** The value of the key in etcd. */
export interface Pointer {
  /** Who moved it. */
  readonly replica: string
  readonly manifest: StoredFile
  readonly sequence: number
  readonly position: Version
  readonly positionAtMs: number
  /**
   * Changes that the archiver did not read one by one, the latest ranges last: of events that were
   * deleted in between, it has at most an earlier state.
   */
  readonly gaps: readonly Gap[]
}

/** Changes after `from`, up to and including `to`. */
export interface Gap {
  readonly from: Version
  readonly to: Version
}

/** The folder of the files of a day: Athena, Trino, ClickHouse, DuckDB and Spark read this layout. */
export function dayFolder({ cluster, date }: Pick<Day, 'cluster' | 'date'>): string {
  return `cluster=${cluster}/date=${date}`
}

/** Rollups have a folder of their own, so that `cluster=*` finds files with events only. */
export function rollupFolder(day: Pick<Day, 'cluster' | 'date'>): string {
  return `rollups/${dayFolder(day)}`
}

export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
