/** Encoders and decoders for leases, compaction, status, alarms, and the requests of a watch. */
import { BackwardWriter, Reader } from '../../lib/protobuf.ts'
import type { Alarm, LeaseGrant, LeaseTtl, MemberStatus, WatchRequest } from './protocol.ts'

/** A request without fields: status, or the alarms of all members. */
export const emptyRequest: Buffer = Buffer.alloc(0)

export function encodeLeaseGrant(ttlSeconds: number): Buffer {
  return firstField(ttlSeconds)
}

/** The request to renew, revoke or read a lease. */
export function encodeLeaseId(id: bigint): Buffer {
  return firstField(id)
}

export function encodeCompaction(revision: number): Buffer {
  return firstField(revision)
}

export function encodeWatchCreate(
  request: Pick<WatchRequest, 'key' | 'rangeEnd' | 'startRevision' | 'prevKv'> & {
    /** Whether etcd may split a response. */
    readonly fragment: boolean
  },
): Buffer {
  const writer = new BackwardWriter(512)
  writer.number(8, request.fragment ? 1 : 0)
  writer.number(6, request.prevKv === true ? 1 : 0)
  // etcd reports progress at intervals, too.
  writer.number(4, 1)
  writer.number(3, request.startRevision)
  if (request.rangeEnd !== undefined) writer.bytes(2, request.rangeEnd)
  writer.bytes(1, request.key)
  writer.message(1, 0)
  return writer.finish()
}

export function encodeWatchProgress(): Buffer {
  const writer = new BackwardWriter(8)
  writer.message(3, 0)
  return writer.finish()
}

/** For responses that only have a header. */
export function decodeNothing(): void {}

export function decodeLeaseGrant(message: Buffer): LeaseGrant {
  const { id, ttlSeconds } = readLease(message)
  return { id, ttlSeconds }
}

/** The new time to live in seconds; 0 when the lease has expired. */
export function decodeLeaseKeepAlive(message: Buffer): number {
  return Math.max(0, readLease(message).ttlSeconds)
}

export function decodeLeaseTtl(message: Buffer): LeaseTtl {
  const { ttlSeconds, grantedTtlSeconds } = readLease(message)
  return { ttlSeconds, grantedTtlSeconds }
}

export function decodeStatus(message: Buffer): Omit<MemberStatus, 'endpoint'> {
  const reader = new Reader(message)
  const errors: string[] = []
  const status = {
    memberId: 0n,
    revision: 0,
    version: '',
    dbBytes: 0,
    dbBytesInUse: 0,
    leader: 0n,
    raftTerm: 0,
    isLearner: false,
    errors,
    storageVersion: '',
    quotaBytes: 0,
    downgradeTo: undefined as string | undefined,
  }
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        Object.assign(status, readHeader(reader))
        break
      case 2:
        status.version = reader.bytes().toString()
        break
      case 3:
        status.dbBytes = reader.number()
        break
      case 4:
        status.leader = unsigned(reader)
        break
      case 6:
        status.raftTerm = reader.number()
        break
      case 8:
        errors.push(reader.bytes().toString())
        break
      case 9:
        status.dbBytesInUse = reader.number()
        break
      case 10:
        status.isLearner = reader.boolean()
        break
      case 11:
        status.storageVersion = reader.bytes().toString()
        break
      case 12:
        status.quotaBytes = reader.number()
        break
      case 13:
        status.downgradeTo = readDowngrade(reader)
        break
      default:
        reader.skip()
    }
  }
  return status
}

function readDowngrade(reader: Reader): string | undefined {
  const outer = reader.enter()
  let isEnabled = false
  let target = ''
  while (reader.next()) {
    if (reader.field === 1) isEnabled = reader.boolean()
    else if (reader.field === 2) target = reader.bytes().toString()
    else reader.skip()
  }
  reader.leave(outer)
  return isEnabled ? target : undefined
}

export function decodeAlarms(message: Buffer): readonly Alarm[] {
  const reader = new Reader(message)
  const alarms: Alarm[] = []
  while (reader.next()) {
    if (reader.field === 2) alarms.push(readAlarm(reader))
    else reader.skip()
  }
  return alarms
}

function firstField(value: number | bigint): Buffer {
  const writer = new BackwardWriter(16)
  writer.number(1, value)
  return writer.finish()
}

/** The responses about leases share their field numbers; only one has a number in field 4. */
function readLease(message: Buffer) {
  const reader = new Reader(message)
  let id = 0n
  let ttlSeconds = 0
  let grantedTtlSeconds = 0
  while (reader.next()) {
    if (reader.field === 2) id = reader.bigint()
    else if (reader.field === 3) ttlSeconds = reader.number()
    else if (reader.field === 4 && reader.wireType === 0) grantedTtlSeconds = reader.number()
    else reader.skip()
  }
  return { id, ttlSeconds, grantedTtlSeconds }
}

function readHeader(reader: Reader): { memberId: bigint; revision: number } {
  const outer = reader.enter()
  let memberId = 0n
  let revision = 0
  while (reader.next()) {
    if (reader.field === 2) memberId = unsigned(reader)
    else if (reader.field === 3) revision = reader.number()
    else reader.skip()
  }
  reader.leave(outer)
  return { memberId, revision }
}

const alarmTypes: ReadonlyMap<number, Alarm['type']> = new Map([
  [1, 'no-space'],
  [2, 'corrupt'],
])

function readAlarm(reader: Reader): Alarm {
  const outer = reader.enter()
  let memberId = 0n
  let alarm = 0
  while (reader.next()) {
    if (reader.field === 1) memberId = unsigned(reader)
    else if (reader.field === 2) alarm = reader.number()
    else reader.skip()
  }
  reader.leave(outer)
  return { memberId, type: alarmTypes.get(alarm) ?? 'unknown' }
}

/** Ids of members use all 64 bits. */
function unsigned(reader: Reader): bigint {
  return BigInt.asUintN(64, reader.bigint())
}
