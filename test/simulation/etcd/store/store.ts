/**
 * The key-value store with its history, shared by all members: it is at the newest committed
 * revision, and a member that is behind reads it as of its own revision. History is dropped when
 * every running member has compacted it.
 */

import type { PutRequest } from '../codec/requests.ts'
import { Arena, Writer } from '../codec/wire.ts'
import { SortedKeys } from './sorted-keys.ts'

/** One version of a key, or its deletion, as stored. */
export interface Version {
  readonly revision: number
  readonly sub: number
  /** 0 for a deletion. */
  readonly createRevision: number
  /** 0 for a deletion. */
  readonly version: number
  readonly lease: bigint
  /** The KeyValue message, as in a response or in an event. */
  readonly encoded: Buffer
  /** Where the value is in it. */
  readonly valueFrom: number
  readonly valueTo: number
}

export function valueIn({ encoded, valueFrom, valueTo }: Version): Buffer {
  return encoded.subarray(valueFrom, valueTo)
}

/** The KeyValue message as in a response with keys only. */
export function encodedWithoutValue({ encoded, valueFrom, valueTo }: Version): Buffer {
  const length = valueTo - valueFrom
  if (length === 0) return encoded
  let prefix = 2
  for (let rest = length; rest >= 0x80; rest >>>= 7) prefix++
  return Buffer.concat([encoded.subarray(0, valueFrom - prefix), encoded.subarray(valueTo)])
}

/** What it takes in the database file: the key of the record, its value, the page's entry. */
function storedBytes({ encoded }: Version): number {
  return 33 + encoded.length
}

export class KeyRecord {
  readonly name: string
  readonly key: Buffer
  /** Oldest first. */
  versions: Version[]

  constructor(name: string, key: Buffer, versions: Version[]) {
    this.name = name
    this.key = key
    this.versions = versions
  }

  /** The version that a read at `revision` sees. */
  at(revision: number): Version | undefined {
    const { versions } = this
    let index = versions.length - 1
    while (index >= 0 && (versions[index] as Version).revision > revision) index--
    const found = versions[index]
    return found === undefined || found.version === 0 ? undefined : found
  }

  /** The newest version or deletion up to `revision`. */
  newest(revision: number): Version | undefined {
    return this.versions.findLast((version) => version.revision <= revision)
  }
}

export interface StoredChange {
  readonly record: KeyRecord
  readonly version: Version
}

export interface Found {
  readonly versions: Version[]
  /** In the whole range, whatever the limit. */
  count: number
}

export interface StoreCopy {
  readonly revision: number
  readonly compacted: number
  readonly records: readonly KeyRecord[]
}

const noChanges: readonly StoredChange[] = []

export class Store {
  revision: number
  /** As of the newest compaction. -1: none so far. */
  compacted: number
  /** What the records take in a database file without free pages. */
  bytes = 0
  readonly #arena = new Arena()
  readonly #writer = new Writer()
  readonly #records = new Map<string, KeyRecord>()
  readonly #sorted = new SortedKeys<KeyRecord>()
  #pending: StoredChange[] = []
  /** The changes of each revision, from `#historyFrom` on; before `#historyHead` they are gone. */
  #history: (readonly StoredChange[])[] = []
  #historyFrom: number
  #historyHead = 0

  constructor(copy?: StoreCopy, bump: number = 0) {
    this.revision = copy?.revision ?? 1
    this.compacted = copy?.compacted ?? -1
    this.#historyFrom = Math.max(1, this.compacted)
    if (copy === undefined) this.#history.push(noChanges)
    else this.#load(copy)
    if (bump > 0) this.#bump(bump)
  }

  /** The revision that a read sees now, inside a transaction including its own changes. */
  get readRevision(): number {
    return this.#pending.length > 0 ? this.revision + 1 : this.revision
  }

  get hasChanges(): boolean {
    return this.#pending.length > 0
  }

  get(name: string, revision: number): Version | undefined {
    return this.#records.get(name)?.at(revision)
  }

  /** `end`: undefined for the one key, '' for no end. `limit`: 0 for none. */
  range(
    range: { readonly key: string; readonly end: string | undefined },
    revision: number,
    limit: number,
  ): Found {
    const found: Found = { versions: [], count: 0 }
    if (range.end === undefined) {
      const version = this.get(range.key, revision)
      if (version !== undefined) {
        found.versions.push(version)
        found.count = 1
      }
      return found
    }
    this.#sorted.visit(range.key, range.end, (record) => {
      const version = record.at(revision)
      if (version === undefined) return
      found.count++
      if (limit <= 0 || found.versions.length < limit) found.versions.push(version)
    })
    return found
  }

  /** The records that a read at `revision` sees in the range. */
  records(key: string, end: string | undefined, revision: number): KeyRecord[] {
    const found: KeyRecord[] = []
    const add = (record: KeyRecord) => {
      if (record.at(revision) !== undefined) found.push(record)
    }
    if (end === undefined) {
      const record = this.#records.get(key)
      if (record !== undefined) add(record)
    } else this.#sorted.visit(key, end, add)
    return found
  }

  put({ key, message, valueFrom, valueTo, lease }: PutRequest): void {
    const revision = this.revision + 1
    let record = this.#records.get(key)
    if (record === undefined) {
      record = new KeyRecord(key, this.#arena.copy(Buffer.from(key, 'latin1')), [])
      this.#records.set(key, record)
      this.#sorted.insert(record)
    }
    const { versions } = record
    const before = versions[versions.length - 1]
    const isNew = before === undefined || before.version === 0
    const createRevision = isNew ? revision : before.createRevision
    const version = isNew ? 1 : before.version + 1
    const writer = this.#writer
    writer.bigint(6, lease)
    const afterValue = writer.length
    writer.slice(5, message, valueFrom, valueTo)
    writer.number(4, version)
    writer.number(3, revision)
    writer.number(2, createRevision)
    writer.bytes(1, record.key)
    const encoded = writer.takeInto(this.#arena)
    const end = encoded.length - afterValue
    this.#add(record, {
      revision,
      sub: this.#pending.length,
      createRevision,
      version,
      lease,
      encoded,
      valueFrom: end - (valueTo - valueFrom),
      valueTo: end,
    })
  }

  delete(record: KeyRecord): void {
    const revision = this.revision + 1
    this.#writer.number(3, revision)
    this.#writer.bytes(1, record.key)
    this.#add(record, {
      revision,
      sub: this.#pending.length,
      createRevision: 0,
      version: 0,
      lease: 0n,
      encoded: this.#writer.takeInto(this.#arena),
      valueFrom: 0,
      valueTo: 0,
    })
  }

  /** Ends a transaction: its changes are the next revision. */
  commit(): readonly StoredChange[] {
    const changes = this.#pending
    if (changes.length === 0) return noChanges
    this.#pending = []
    this.revision++
    this.#history.push(changes)
    return changes
  }

  changesAt(revision: number): readonly StoredChange[] {
    return this.#history[revision - this.#historyFrom] ?? noChanges
  }

  /** Drops what no read at or after `floor` sees, and the history before `floor`. */
  drop(floor: number): void {
    const last = Math.min(floor, this.revision)
    for (let revision = this.#historyFrom + this.#historyHead; revision <= last; revision++) {
      for (const { record } of this.changesAt(revision)) this.#trim(record, floor)
      if (revision < last) this.#history[revision - this.#historyFrom] = noChanges
    }
    this.#historyHead = Math.max(this.#historyHead, last - this.#historyFrom)
    if (this.#historyHead < 1024) return
    this.#history.splice(0, this.#historyHead)
    this.#historyFrom += this.#historyHead
    this.#historyHead = 0
  }

  copy(): StoreCopy {
    const records: KeyRecord[] = []
    this.#sorted.visit('', '', (record) => {
      records.push(new KeyRecord(record.name, record.key, record.versions.slice()))
    })
    return { revision: this.revision, compacted: this.compacted, records }
  }

  #add(record: KeyRecord, version: Version): void {
    record.versions.push(version)
    this.#pending.push({ record, version })
    this.bytes += storedBytes(version)
  }

  #trim(record: KeyRecord, floor: number): void {
    const { versions } = record
    let keep = versions.length - 1
    while (keep >= 0 && (versions[keep] as Version).revision > floor) keep--
    const newest = versions[keep]
    if (newest === undefined) return
    // etcd keeps a deletion at the compacted revision itself: a watch may begin there.
    if (newest.version === 0 && newest.revision < floor) keep++
    for (const version of versions.splice(0, keep)) this.bytes -= storedBytes(version)
    if (versions.length > 0) return
    this.#records.delete(record.name)
    this.#sorted.remove(record)
  }

  /** Revisions continue far after the newest one, and all history is gone. */
  #bump(bump: number): void {
    this.revision += bump
    this.compacted = this.revision
    for (const record of [...this.#records.values()]) this.#trim(record, this.revision)
    this.#history = [noChanges]
    this.#historyFrom = this.revision
    this.#historyHead = 0
  }

  #load(copy: StoreCopy): void {
    const changes: StoredChange[] = []
    for (const { name, key, versions } of copy.records) {
      const record = new KeyRecord(name, key, versions.slice())
      this.#records.set(name, record)
      this.#sorted.insert(record)
      for (const version of versions) {
        changes.push({ record, version })
        this.bytes += storedBytes(version)
      }
    }
    changes.sort((a, b) => a.version.revision - b.version.revision || a.version.sub - b.version.sub)
    const byRevision: StoredChange[][] = []
    for (let revision = this.#historyFrom; revision <= this.revision; revision++)
      byRevision.push([])
    for (const change of changes) {
      byRevision[change.version.revision - this.#historyFrom]?.push(change)
    }
    this.#history = byRevision
    if (this.compacted > 0) for (const { record } of changes) this.#trim(record, this.compacted)
  }
}
