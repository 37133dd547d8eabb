/**
 * Encoders and decoders for the messages whose number or size grows with the traffic:
 * transactions, range responses, watch messages. They convert directly from and to the types of
 * protocol.ts. The benchmark bench/etcd-decode.bench.ts measures what that saves over generated
 * code; test/ci/integration/etcd-messages.test.ts compares each of them with it.
 */

import { BackwardWriter, Reader } from '../../lib/protobuf.ts'
import type {
  Compare,
  KeyValue,
  RangeRequest,
  RangeResult,
  Txn,
  TxnOp,
  TxnOpResult,
  TxnResult,
  WatchEvent,
} from './protocol.ts'

export function encodeTxn(txn: Txn): Buffer {
  const writer = new BackwardWriter(4096)
  writeTxn(writer, txn)
  return writer.finish()
}

export function encodeRange(request: RangeRequest): Buffer {
  const writer = new BackwardWriter(512)
  writeRange(writer, request)
  return writer.finish()
}

export function decodeRangeResult(message: Buffer): RangeResult {
  return readRangeResult(new Reader(message))
}

/** The keys of one message of a range stream; its revision and count are known before. */
export function decodeRangeChunk(message: Buffer): readonly KeyValue[] {
  const reader = new Reader(message)
  let kvs: readonly KeyValue[] = []
  while (reader.next()) {
    if (reader.field !== 1) {
      reader.skip()
      continue
    }
    const outer = reader.enter()
    kvs = readRangeResult(reader).kvs
    reader.leave(outer)
  }
  return kvs
}

export function decodeTxnResult(message: Buffer): TxnResult {
  return readTxnResult(new Reader(message))
}

/** One message of a watch stream as etcd sends it. */
export interface WatchMessage {
  readonly revision: number
  readonly created: boolean
  readonly canceled: boolean
  /** Not 0: the watch was cancelled because the history it needs is compacted up to here. */
  readonly compactRevision: number
  readonly cancelReason: string
  /** More fragments of the same response follow. */
  readonly fragment: boolean
  readonly events: readonly WatchEvent[]
}

export function decodeWatchMessage(message: Buffer): WatchMessage {
  const reader = new Reader(message)
  const events: WatchEvent[] = []
  let revision = 0
  let created = false
  let canceled = false
  let compactRevision = 0
  let cancelReason = ''
  let fragment = false
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        revision = readHeader(reader)
        break
      case 3:
        created = reader.boolean()
        break
      case 4:
        canceled = reader.boolean()
        break
      case 5:
        compactRevision = reader.number()
        break
      case 6:
        cancelReason = reader.bytes().toString()
        break
      case 7:
        fragment = reader.boolean()
        break
      case 11:
        events.push(readEvent(reader))
        break
      default:
        reader.skip()
    }
  }
  return { revision, created, canceled, compactRevision, cancelReason, fragment, events }
}

const none: Buffer = Buffer.alloc(0)
/** Inside a oneof a value counts as set even when it is the default. */
const always = { always: true } as const

const compareResults = { '=': 0, '>': 1, '<': 2, '!=': 3 } as const
const compareTargets = {
  version: 0,
  createRevision: 1,
  modRevision: 2,
  value: 3,
  lease: 4,
} as const
const compareFields = { version: 4, createRevision: 5, modRevision: 6, value: 7, lease: 8 } as const

function writeTxn(writer: BackwardWriter, txn: Txn): void {
  writeOps(writer, 3, txn.failure)
  writeOps(writer, 2, txn.success)
  const compares = txn.compare ?? []
  for (let index = compares.length - 1; index >= 0; index--) {
    const compare = compares[index]
    if (compare === undefined) continue
    const mark = writer.mark()
    writeCompare(writer, compare)
    writer.message(1, mark)
  }
}

function writeOps(writer: BackwardWriter, field: number, ops: readonly TxnOp[] | undefined): void {
  if (ops === undefined) return
  for (let index = ops.length - 1; index >= 0; index--) {
    const op = ops[index]
    if (op === undefined) continue
    const mark = writer.mark()
    writeOp(writer, op)
    writer.message(field, mark)
  }
}

function writeOp(writer: BackwardWriter, op: TxnOp): void {
  const mark = writer.mark()
  switch (op.type) {
    case 'range':
      writeRange(writer, op)
      writer.message(1, mark)
      break
    case 'put':
      writer.number(4, op.prevKv === true ? 1 : 0)
      writer.number(3, op.lease ?? 0n)
      writer.bytes(2, op.value)
      writer.bytes(1, op.key)
      writer.message(2, mark)
      break
    case 'delete':
      writer.number(3, op.prevKv === true ? 1 : 0)
      writer.bytes(2, op.rangeEnd ?? none)
      writer.bytes(1, op.key)
      writer.message(3, mark)
      break
    case 'txn':
      writeTxn(writer, op)
      writer.message(4, mark)
      break
  }
}

function writeCompare(writer: BackwardWriter, compare: Compare): void {
  writer.bytes(64, compare.rangeEnd ?? none)
  if (compare.target === 'value') writer.bytes(compareFields.value, compare.to, always)
  else writer.number(compareFields[compare.target], compare.to, always)
  writer.bytes(3, compare.key)
  writer.number(2, compareTargets[compare.target])
  writer.number(1, compareResults[compare.is ?? '='])
}

function writeRange(writer: BackwardWriter, request: RangeRequest): void {
  writer.number(9, request.countOnly === true ? 1 : 0)
  writer.number(8, request.keysOnly === true ? 1 : 0)
  writer.number(4, request.revision ?? 0)
  writer.number(3, request.limit ?? 0)
  writer.bytes(2, request.rangeEnd ?? none)
  writer.bytes(1, request.key)
}

/** Reads only the revision of the response header. */
function readHeader(reader: Reader): number {
  const outer = reader.enter()
  let revision = 0
  while (reader.next()) {
    if (reader.field === 3) revision = reader.number()
    else reader.skip()
  }
  reader.leave(outer)
  return revision
}

function readKeyValue(reader: Reader): KeyValue {
  const outer = reader.enter()
  let key = none
  let value = none
  let createRevision = 0
  let modRevision = 0
  let version = 0
  let lease = 0n
  while (reader.next()) {
    if (reader.field === 1) key = reader.bytes()
    else if (reader.field === 2) createRevision = reader.number()
    else if (reader.field === 3) modRevision = reader.number()
    else if (reader.field === 4) version = reader.number()
    else if (reader.field === 5) value = reader.bytes()
    else if (reader.field === 6) lease = reader.bigint()
    else reader.skip()
  }
  reader.leave(outer)
  return { key, value, createRevision, modRevision, version, lease }
}

function readRangeResult(reader: Reader): RangeResult {
  const kvs: KeyValue[] = []
  let revision = 0
  let more = false
  let count = 0
  while (reader.next()) {
    if (reader.field === 2) kvs.push(readKeyValue(reader))
    else if (reader.field === 1) revision = readHeader(reader)
    else if (reader.field === 3) more = reader.boolean()
    else if (reader.field === 4) count = reader.number()
    else reader.skip()
  }
  return { revision, kvs, more, count }
}

function readTxnResult(reader: Reader): TxnResult {
  const results: TxnOpResult[] = []
  let revision = 0
  let succeeded = false
  while (reader.next()) {
    if (reader.field === 3) results.push(readOpResult(reader))
    else if (reader.field === 1) revision = readHeader(reader)
    else if (reader.field === 2) succeeded = reader.boolean()
    else reader.skip()
  }
  return { revision, succeeded, results }
}

function readOpResult(reader: Reader): TxnOpResult {
  const outer = reader.enter()
  let result: TxnOpResult | undefined
  while (reader.next()) {
    const kind = reader.field
    if (kind < 1 || kind > 4) {
      reader.skip()
      continue
    }
    const around = reader.enter()
    result = readResultOfKind(reader, kind)
    reader.leave(around)
  }
  reader.leave(outer)
  if (result === undefined) throw new RangeError('a transaction response has an empty result')
  return result
}

function readResultOfKind(reader: Reader, kind: number): TxnOpResult {
  if (kind === 1) return { type: 'range', ...readRangeResult(reader) }
  if (kind === 2) return readPutResult(reader)
  if (kind === 3) return readDeleteResult(reader)
  const { succeeded, results } = readTxnResult(reader)
  return { type: 'txn', succeeded, results }
}

function readPutResult(reader: Reader): TxnOpResult {
  let prevKv: KeyValue | undefined
  while (reader.next()) {
    if (reader.field === 2) prevKv = readKeyValue(reader)
    else reader.skip()
  }
  return { type: 'put', prevKv }
}

function readDeleteResult(reader: Reader): TxnOpResult {
  const prevKvs: KeyValue[] = []
  let deleted = 0
  while (reader.next()) {
    if (reader.field === 3) prevKvs.push(readKeyValue(reader))
    else if (reader.field === 2) deleted = reader.number()
    else reader.skip()
  }
  return { type: 'delete', deleted, prevKvs }
}

function readEvent(reader: Reader): WatchEvent {
  const outer = reader.enter()
  let isDelete = false
  let kv: KeyValue | undefined
  let prevKv: KeyValue | undefined
  while (reader.next()) {
    if (reader.field === 1) isDelete = reader.boolean()
    else if (reader.field === 2) kv = readKeyValue(reader)
    else if (reader.field === 3) prevKv = readKeyValue(reader)
    else reader.skip()
  }
  reader.leave(outer)
  if (kv === undefined) throw new RangeError('a watch message has an event without a key')
  return { type: isDelete ? 'delete' : 'put', kv, prevKv }
}
