/**
 * What etcd really committed: the events of one history, in order, as far back as a check may need
 * it. After a restore of etcd a new lineage continues from the snapshot; the old one stays for a
 * while, for what replicas may still say about it.
 */
import { revisionIn } from './stored-text.ts'

/** One change of one event. */
export interface ChangeRecord {
  /** `namespace/name`. */
  readonly path: string
  readonly namespace: string
  readonly version: number
  readonly revision: number
  readonly at: number
  readonly isDelete: boolean
  /** Empty for a delete. */
  readonly body: Buffer
  readonly writtenAtMs: number
  /** The client operation that wrote it; 0 for a delete. */
  readonly operation: number
  readonly facet: number
  /** The state before; undefined if there was none, or once it is forgotten. */
  before: ChangeRecord | undefined
}

export interface KeyRecord {
  readonly path: string
  head: ChangeRecord
}

/** What a read of one event returned; undefined: that it is missing. */
export type Seen =
  | { readonly version: number; readonly body: Buffer; readonly writtenAtMs?: number | undefined }
  | undefined

const trimChunk = 4_096

export class Lineage {
  readonly epoch: number
  /** The newest revision when this lineage began: everything up to it is shared or restored. */
  readonly base: number
  /** Revisions up to this one are shared with the lineage before. */
  readonly kept: number
  newest: number
  /** Nothing is known of states before this revision. */
  horizon: number
  readonly #keys = new Map<string, KeyRecord>()
  /** Sorted by path. */
  readonly #order: KeyRecord[] = []
  #log: ChangeRecord[] = []
  /** The position of the first entry of `#log`. */
  #logStart = 0
  /** Entries of `#log` before this index are forgotten, but not yet removed. */
  #trimmed = 0

  constructor(options: {
    readonly epoch: number
    readonly base: number
    readonly kept: number
  }) {
    this.epoch = options.epoch
    this.base = options.base
    this.kept = options.kept
    this.newest = options.base
    this.horizon = options.base
  }

  get count(): number {
    return this.#order.length
  }

  get logEnd(): number {
    return this.#logStart + this.#log.length
  }

  get keys(): Iterable<KeyRecord> {
    return this.#order
  }

  head(path: string): ChangeRecord | undefined {
    return this.#keys.get(path)?.head
  }

  /** The n-th key, for clients that pick one at random. */
  keyAt(index: number): KeyRecord | undefined {
    return this.#order[index]
  }

  /** The change at a position of the log; undefined at its end, and for a forgotten one. */
  change(position: number): ChangeRecord | undefined {
    const index = position - this.#logStart
    return index < this.#trimmed ? undefined : this.#log[index]
  }

  /** The position of the first change after the version. */
  positionAfter(version: number): number {
    let low = this.#trimmed
    let high = this.#log.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#log[middle]?.version ?? 0) > version) high = middle
      else low = middle + 1
    }
    return this.#logStart + low
  }

  /** Adds a record that a client can see from now on. */
  append(record: ChangeRecord): void {
    this.#log.push(record)
    this.place(record)
  }

  /** Makes the record the current state of its key. */
  place(record: ChangeRecord): void {
    const known = this.#keys.get(record.path)
    if (known !== undefined) {
      known.head = record
      return
    }
    const key: KeyRecord = { path: record.path, head: record }
    this.#keys.set(record.path, key)
    this.#order.splice(this.indexOf(record.path), 0, key)
  }

  /** The changes up to a revision, as far as they are known, oldest first. */
  *changesUpTo(revision: number): Generator<ChangeRecord> {
    for (let index = this.#trimmed; index < this.#log.length; index++) {
      const record = this.#log[index]
      if (record === undefined || record.revision > revision) return
      yield record
    }
  }

  /** The index of the first key that is not before the path. */
  indexOf(path: string): number {
    let low = 0
    let high = this.#order.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#order[middle]?.path ?? '') < path) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The state of a key at a revision that is not before the horizon; undefined when missing. */
  stateAt(key: KeyRecord, revision: number): ChangeRecord | undefined {
    let record: ChangeRecord | undefined = key.head
    while (record !== undefined && record.revision > revision) record = record.before
    return record === undefined || record.isDelete ? undefined : record
  }

  /** Returns whether a read may have seen this state at a revision between the two, both included. */
  couldSee(path: string, seen: Seen, between: readonly [number, number]): boolean {
    const [from, to] = between
    let record = this.head(path)
    for (; record !== undefined; record = record.before) {
      if (record.revision <= to && isState(record, seen)) return true
      if (record.revision <= from) return false
    }
    return seen === undefined
  }

  /** The change of this key with this version, not before the horizon. */
  find(path: string, version: number): ChangeRecord | undefined {
    let record = this.head(path)
    while (record !== undefined && record.version > version) record = record.before
    return record?.version === version ? record : undefined
  }

  /** Forgets all states before a revision, but not the state at it. */
  forget(revision: number): void {
    if (revision <= this.horizon) return
    this.horizon = revision
    let index = this.#trimmed
    for (; index < this.#log.length; index++) {
      const record = this.#log[index]
      if (record === undefined || record.revision > revision) break
      record.before = undefined
      if (record.isDelete) this.#removeIfLast(record)
    }
    this.#trimmed = index
    if (index < trimChunk) return
    this.#log = this.#log.slice(index)
    this.#logStart += index
    this.#trimmed = 0
  }

  #removeIfLast(record: ChangeRecord): void {
    if (this.#keys.get(record.path)?.head !== record) return
    this.#keys.delete(record.path)
    this.#order.splice(this.indexOf(record.path), 1)
  }
}

function isState(record: ChangeRecord, seen: Seen): boolean {
  if (seen === undefined) return record.isDelete
  return !record.isDelete && isSame(record, seen)
}

/** Returns whether version, bytes and write time are those that were committed. */
export function isSame(record: ChangeRecord, seen: NonNullable<Seen>): boolean {
  if (record.version !== seen.version || !record.body.equals(seen.body)) return false
  return seen.writtenAtMs === undefined || seen.writtenAtMs === record.writtenAtMs
}

/** A line of evidence. */
export function describe(record: ChangeRecord | undefined): string {
  if (record === undefined) return 'nothing'
  const { path, version, revision, at, isDelete, operation } = record
  const what = isDelete ? 'delete' : `put by operation ${operation}`
  return `${path}: ${what}, version ${version}, revision ${revision}, at ${at.toFixed(1)} ms`
}

/** The last changes of a key, newest first. */
export function historyOf(lineage: Lineage, path: string, most = 6): readonly string[] {
  const lines: string[] = []
  let record = lineage.head(path)
  while (record !== undefined && lines.length < most) {
    lines.push(`history of ${describe(record)}`)
    record = record.before
  }
  if (lines.length === 0) lines.push(`history of ${path}: none known`)
  return lines
}

export function describeSeen(seen: Seen): string {
  if (seen === undefined) return 'missing'
  return `version ${seen.version} (revision ${revisionIn(seen.version)}), ${seen.body.length} bytes`
}
