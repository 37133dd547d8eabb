/**
 * The key-value store with its history, shared by all members: it is at the newest committed
 * revision, and a member that is behind reads it as of its own revision. History is dropped when
 * every member has compacted it.
 */
import { create } from '@bufbuild/protobuf'
import { type KeyValue, KeyValueSchema } from '../../support/etcd-protocol/rpc_pb.ts'
import { SortedKeys } from './sorted-keys.ts'

/** One version of a key, or its deletion. */
export interface Version {
  readonly revision: number
  /** The position in its transaction. */
  readonly sub: number
  /** A deletion has only the key and the revision. */
  readonly kv: KeyValue
}

export function isDeletion({ kv }: Version): boolean {
  return kv.version === 0n
}

/** The size in the database file: the key of the record, the message, and the page's entry. */
function storedBytes({ kv }: Version): number {
  return 60 + kv.key.length + kv.value.length
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
    const found = this.newest(revision)
    return found === undefined || isDeletion(found) ? undefined : found
  }

  /** The newest version or deletion up to `revision`. */
  newest(revision: number): Version | undefined {
    const { versions } = this
    let index = versions.length - 1
    while (index >= 0 && (versions[index] as Version).revision > revision) index--
    return versions[index]
  }
}

export interface StoredChange {
  readonly record: KeyRecord
  readonly version: Version
}

export interface StoreCopy {
  readonly revision: number
  readonly compacted: number
  readonly records: readonly KeyRecord[]
}

const noChanges: readonly StoredChange[] = []

export class Store {
  revision: number
  /** The revision of the newest compaction, or -1. */
  compacted: number
  /** The size of all records in a database file without free pages. */
  bytes = 0
  readonly #records = new Map<string, KeyRecord>()
  readonly #sorted = new SortedKeys<KeyRecord>()
  #pending: StoredChange[] = []
  /** The changes of each revision from `#historyFrom` on; empty before `#historyHead`. */
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

  /** The revision that a read sees; inside a transaction this includes its own changes. */
  get readRevision(): number {
    return this.#pending.length > 0 ? this.revision + 1 : this.revision
  }

  get(name: string, revision: number): KeyValue | undefined {
    return this.#records.get(name)?.at(revision)?.kv
  }

  /** The records that a read at `revision` sees. `end`: undefined for one key, '' for no end. */
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

  put(name: string, value: Uint8Array, lease: bigint): void {
    let record = this.#records.get(name)
    if (record === undefined) {
      record = new KeyRecord(name, Buffer.from(name, 'latin1'), [])
      this.#records.set(name, record)
      this.#sorted.insert(record)
    }
    const modRevision = BigInt(this.revision + 1)
    const before = record.versions.at(-1)?.kv
    const isNew = before === undefined || before.version === 0n
    this.#add(record, {
      key: record.key,
      // A copy, since the value is part of a larger buffer.
      value: Buffer.from(value),
      createRevision: isNew ? modRevision : before.createRevision,
      modRevision,
      version: isNew ? 1n : before.version + 1n,
      lease,
    })
  }

  delete(record: KeyRecord): void {
    this.#add(record, { key: record.key, modRevision: BigInt(this.revision + 1) })
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

  /** Drops the history before `floor`, and versions that no read at or after `floor` sees. */
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

  #add(record: KeyRecord, fields: Partial<Omit<KeyValue, '$typeName'>>): void {
    const kv = create(KeyValueSchema, fields)
    const version = { revision: this.revision + 1, sub: this.#pending.length, kv }
    record.versions.push(version)
    this.#pending.push({ record, version })
    this.bytes += storedBytes(version)
  }

  #trim(record: KeyRecord, floor: number): void {
    const { versions } = record
    let oldest = versions.length - 1
    while (oldest >= 0 && (versions[oldest] as Version).revision > floor) oldest--
    const newest = versions[oldest]
    if (newest === undefined) return
    // etcd retains a deletion at the compacted revision itself: a watch may begin there.
    if (isDeletion(newest) && newest.revision < floor) oldest++
    for (const version of versions.splice(0, oldest)) this.bytes -= storedBytes(version)
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
