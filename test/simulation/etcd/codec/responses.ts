/** Encodes the responses of etcd's API. Fields are written last to first. */
import type { Alarm, Lease, OpResult, TxnResult } from '../machine.ts'
import { encodedWithoutValue, type StoredChange, type Version } from '../store/store.ts'
import { Writer } from './wire.ts'

/** The parts of a response header; ids are encoded once. */
export interface Header {
  /** `cluster_id` and `member_id`, encoded. */
  readonly ids: Buffer
  readonly term: number
  readonly revision: number
}

export interface WatchEvent {
  readonly change: StoredChange
  readonly prev: Version | undefined
}

export interface WatchResponse {
  readonly header: Header
  readonly watchId: number
  readonly created?: boolean
  readonly canceled?: boolean
  readonly compactRevision?: number
  readonly cancelReason?: string
  readonly fragment?: boolean
  readonly events?: readonly WatchEvent[]
}

export function encodeIds(clusterId: bigint, memberId: bigint): Buffer {
  const writer = new Writer()
  writer.bigint(2, memberId)
  writer.bigint(1, clusterId)
  return writer.take()
}

export class Encoder {
  readonly #writer = new Writer()

  /** The response to a range, put, delete or transaction. */
  op(header: Header, result: OpResult): Buffer {
    this.#content(result)
    return this.#take(header)
  }

  /** A response that has only a header. */
  plain(header: Header): Buffer {
    return this.#take(header)
  }

  grant(header: Header, lease: Lease): Buffer {
    this.#writer.number(3, lease.ttlSeconds)
    this.#writer.bigint(2, lease.id)
    return this.#take(header)
  }

  keepAlive(header: Header, id: bigint, ttl: number): Buffer {
    this.#writer.number(3, ttl)
    this.#writer.bigint(2, id)
    return this.#take(header)
  }

  timeToLive(
    header: Header,
    id: bigint,
    lease: { readonly ttl: number; readonly granted: number; readonly keys: readonly string[] },
  ): Buffer {
    const writer = this.#writer
    for (const key of lease.keys.toReversed()) writer.bytes(5, Buffer.from(key, 'latin1'))
    writer.number(4, lease.granted)
    writer.number(3, lease.ttl)
    writer.bigint(2, id)
    return this.#take(header)
  }

  alarms(header: Header, alarms: readonly Alarm[]): Buffer {
    const writer = this.#writer
    for (const { memberId, alarm } of alarms.toReversed()) {
      const mark = writer.length
      writer.number(2, alarm)
      writer.bigint(1, memberId)
      writer.message(2, mark)
    }
    return this.#take(header)
  }

  status(
    header: Header,
    status: {
      readonly version: string
      readonly dbSize: number
      readonly dbSizeInUse: number
      readonly leader: bigint
      readonly raftIndex: number
      readonly raftTerm: number
      readonly raftAppliedIndex: number
      readonly errors: readonly string[]
    },
  ): Buffer {
    const writer = this.#writer
    writer.number(9, status.dbSizeInUse)
    for (const error of status.errors.toReversed()) writer.text(8, error)
    writer.number(7, status.raftAppliedIndex)
    writer.number(6, status.raftTerm)
    writer.number(5, status.raftIndex)
    writer.bigint(4, status.leader)
    writer.number(3, status.dbSize)
    writer.text(2, status.version)
    return this.#take(header)
  }

  watch(response: WatchResponse): Buffer {
    const writer = this.#writer
    const events = response.events ?? []
    for (let index = events.length - 1; index >= 0; index--) {
      this.#event(events[index] as WatchEvent)
    }
    if (response.fragment === true) writer.number(7, 1)
    if (response.cancelReason !== undefined) writer.text(6, response.cancelReason)
    writer.number(5, response.compactRevision ?? 0)
    if (response.canceled === true) writer.number(4, 1)
    if (response.created === true) writer.number(3, 1)
    writer.number(2, response.watchId)
    return this.#take(response.header)
  }

  /** The bytes of an event in a watch response. */
  static eventBytes({ change, prev }: WatchEvent): number {
    let bytes = field(change.version.encoded.length) + (change.version.version === 0 ? 2 : 0)
    if (prev !== undefined) bytes += field(prev.encoded.length)
    return field(bytes)
  }

  #event({ change, prev }: WatchEvent): void {
    const writer = this.#writer
    const mark = writer.length
    if (prev !== undefined) writer.encoded(3, prev.encoded)
    writer.encoded(2, change.version.encoded)
    if (change.version.version === 0) writer.number(1, 1)
    writer.message(11, mark)
  }

  #take(header: Header): Buffer {
    const writer = this.#writer
    const mark = writer.length
    writer.number(4, header.term)
    writer.number(3, header.revision)
    writer.raw(header.ids)
    writer.message(1, mark)
    return writer.take()
  }

  /** Everything of a response but its header. */
  #content(result: OpResult): void {
    const writer = this.#writer
    switch (result.kind) {
      case 'range':
        writer.number(4, result.count)
        if (result.more) writer.number(3, 1)
        this.#kvs(2, result.versions, result.keysOnly)
        break
      case 'put':
        if (result.prev !== undefined) writer.encoded(2, result.prev.encoded)
        break
      case 'delete':
        this.#kvs(3, result.prevs, false)
        writer.number(2, result.deleted)
        break
      case 'txn':
        this.#results(result)
        break
    }
  }

  #results(txn: TxnResult): void {
    const writer = this.#writer
    for (let index = txn.results.length - 1; index >= 0; index--) {
      const result = txn.results[index] as OpResult
      const outer = writer.length
      this.#content(result)
      // The header of an operation has a revision only, that of a nested transaction nothing.
      const mark = writer.length
      writer.number(3, result.revision)
      writer.message(1, mark)
      writer.message(opFields[result.kind], outer)
      writer.message(3, outer)
    }
    if (txn.succeeded) writer.number(2, 1)
  }

  #kvs(fieldNumber: number, versions: readonly Version[], keysOnly: boolean): void {
    const writer = this.#writer
    for (let index = versions.length - 1; index >= 0; index--) {
      const version = versions[index] as Version
      if (keysOnly) writer.encoded(fieldNumber, encodedWithoutValue(version))
      else writer.encoded(fieldNumber, version.encoded)
    }
  }
}

const opFields = { range: 1, put: 2, delete: 3, txn: 4 } as const

/** The length of a field whose tag has one byte and whose content has `length`. */
function field(length: number): number {
  let varint = 1
  for (let rest = length; rest >= 0x80; rest >>>= 7) varint++
  return 1 + varint + length
}
