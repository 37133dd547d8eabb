/**
 * The requests of etcd's API, decoded. Keys are latin1 strings, which sort like their bytes.
 */
import { Cursor } from './cursor.ts'

export interface RangeRequest {
  readonly kind: 'range'
  key: string
  /** Undefined: the one key. '': every key from `key` on. */
  end: string | undefined
  limit: number
  revision: number
  serializable: boolean
  keysOnly: boolean
  countOnly: boolean
}

export interface PutRequest {
  readonly kind: 'put'
  key: string
  /** The message that the value is in, and where. */
  readonly message: Buffer
  valueFrom: number
  valueTo: number
  lease: bigint
  prevKv: boolean
}

export interface DeleteRequest {
  readonly kind: 'delete'
  key: string
  end: string | undefined
  /** The end as sent, which the check for duplicates uses. */
  rawEnd: string
  prevKv: boolean
}

export interface TxnRequest {
  readonly kind: 'txn'
  readonly compares: CompareRequest[]
  readonly success: (Op | undefined)[]
  readonly failure: (Op | undefined)[]
}

export type Op = RangeRequest | PutRequest | DeleteRequest | TxnRequest

export interface CompareRequest {
  result: number
  target: number
  key: string
  end: string | undefined
  /** Which field of the union was sent; 0: none. */
  field: number
  number: number
  lease: bigint
  value: Buffer
}

export interface WatchCreate {
  readonly kind: 'create'
  key: string
  end: string | undefined
  startRevision: number
  progressNotify: boolean
  prevKv: boolean
  fragment: boolean
  watchId: number
  noPut: boolean
  noDelete: boolean
}

export type WatchRequest =
  | WatchCreate
  | { readonly kind: 'cancel'; readonly watchId: number }
  | { readonly kind: 'progress' }

const none: Buffer = Buffer.alloc(0)

export function decodeRange(message: Buffer): RangeRequest {
  return readRange(new Cursor(message))
}

export function decodeTxn(message: Buffer): TxnRequest {
  return readTxn(new Cursor(message))
}

export function decodePut(message: Buffer): PutRequest {
  return readPut(new Cursor(message))
}

export function decodeDelete(message: Buffer): DeleteRequest {
  return readDelete(new Cursor(message))
}

/** Undefined: a request without content, which etcd ignores. */
export function decodeWatch(message: Buffer): WatchRequest | undefined {
  const reader = new Cursor(message)
  let request: WatchRequest | undefined
  while (reader.next()) {
    const { field } = reader
    if (field < 1 || field > 3) {
      reader.skip()
      continue
    }
    const outer = reader.enter()
    if (field === 1) request = readCreate(reader)
    else if (field === 2) request = { kind: 'cancel', watchId: Number(firstNumber(reader)) }
    else {
      request = { kind: 'progress' }
      while (reader.next()) reader.skip()
    }
    reader.leave(outer)
  }
  return request
}

/** The numbers of a small message by their fields: enough for leases, compaction and alarms. */
export function decodeNumbers(message: Buffer): Map<number, bigint> {
  const reader = new Cursor(message)
  const numbers = new Map<number, bigint>()
  while (reader.next()) {
    if (reader.wireType === 0) numbers.set(reader.field, reader.bigint())
    else reader.skip()
  }
  return numbers
}

function firstNumber(reader: Cursor): bigint {
  let number = 0n
  while (reader.next()) {
    if (reader.field === 1) number = reader.bigint()
    else reader.skip()
  }
  return number
}

/** The end of a range: '\0' alone means that there is none. */
function endOf(end: string): string | undefined {
  if (end === '') return undefined
  return end === '\0' ? '' : end
}

function readRange(reader: Cursor): RangeRequest {
  const request: RangeRequest = {
    kind: 'range',
    key: '',
    end: undefined,
    limit: 0,
    revision: 0,
    serializable: false,
    keysOnly: false,
    countOnly: false,
  }
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        request.key = reader.latin1()
        break
      case 2:
        request.end = endOf(reader.latin1())
        break
      case 3:
        request.limit = reader.number()
        break
      case 4:
        request.revision = reader.number()
        break
      case 7:
        request.serializable = reader.boolean()
        break
      case 8:
        request.keysOnly = reader.boolean()
        break
      case 9:
        request.countOnly = reader.boolean()
        break
      default:
        reader.skip()
    }
  }
  return request
}

function readPut(reader: Cursor): PutRequest {
  const put: PutRequest = {
    kind: 'put',
    key: '',
    message: reader.buffer,
    valueFrom: 0,
    valueTo: 0,
    lease: 0n,
    prevKv: false,
  }
  while (reader.next()) {
    const { field } = reader
    if (field === 1) put.key = reader.latin1()
    else if (field === 2) {
      reader.skipBytes()
      put.valueFrom = reader.from
      put.valueTo = reader.to
    } else if (field === 3) put.lease = reader.bigint()
    else if (field === 4) put.prevKv = reader.boolean()
    else reader.skip()
  }
  return put
}

function readDelete(reader: Cursor): DeleteRequest {
  let key = ''
  let rawEnd = ''
  let prevKv = false
  while (reader.next()) {
    if (reader.field === 1) key = reader.latin1()
    else if (reader.field === 2) rawEnd = reader.latin1()
    else if (reader.field === 3) prevKv = reader.boolean()
    else reader.skip()
  }
  return { kind: 'delete', key, end: endOf(rawEnd), rawEnd, prevKv }
}

function readTxn(reader: Cursor): TxnRequest {
  const request: TxnRequest = { kind: 'txn', compares: [], success: [], failure: [] }
  while (reader.next()) {
    const { field } = reader
    if (field < 1 || field > 3) {
      reader.skip()
      continue
    }
    const outer = reader.enter()
    if (field === 1) request.compares.push(readCompare(reader))
    else (field === 2 ? request.success : request.failure).push(readOp(reader))
    reader.leave(outer)
  }
  return request
}

function readOp(reader: Cursor): Op | undefined {
  let op: Op | undefined
  while (reader.next()) {
    const { field } = reader
    if (field < 1 || field > 4) {
      reader.skip()
      continue
    }
    const outer = reader.enter()
    if (field === 1) op = readRange(reader)
    else if (field === 2) op = readPut(reader)
    else if (field === 3) op = readDelete(reader)
    else op = readTxn(reader)
    reader.leave(outer)
  }
  return op
}

function readCompare(reader: Cursor): CompareRequest {
  const compare: CompareRequest = {
    result: 0,
    target: 0,
    key: '',
    end: undefined,
    field: 0,
    number: 0,
    lease: 0n,
    value: none,
  }
  while (reader.next()) {
    const { field } = reader
    if (field === 1) compare.result = reader.number()
    else if (field === 2) compare.target = reader.number()
    else if (field === 3) compare.key = reader.latin1()
    else if (field === 64) compare.end = endOf(reader.latin1())
    else readOperand(reader, compare)
  }
  return compare
}

function readOperand(reader: Cursor, compare: CompareRequest): void {
  const { field } = reader
  if (field < 4 || field > 8) {
    reader.skip()
    return
  }
  compare.field = field
  if (field === 7) {
    reader.skipBytes()
    compare.value = reader.buffer.subarray(reader.from, reader.to)
  } else if (field === 8) compare.lease = reader.bigint()
  else compare.number = reader.number()
}

function readCreate(reader: Cursor): WatchCreate {
  const request: WatchCreate = {
    kind: 'create',
    key: '\0',
    end: undefined,
    startRevision: 0,
    progressNotify: false,
    prevKv: false,
    fragment: false,
    watchId: 0,
    noPut: false,
    noDelete: false,
  }
  while (reader.next()) readCreateField(reader, request)
  return request
}

function readCreateField(reader: Cursor, request: WatchCreate): void {
  switch (reader.field) {
    case 1:
      request.key = reader.latin1()
      if (request.key === '') request.key = '\0'
      break
    case 2:
      request.end = endOf(reader.latin1())
      break
    case 3:
      request.startRevision = reader.number()
      break
    case 4:
      request.progressNotify = reader.boolean()
      break
    case 5:
      for (const filter of readEnums(reader)) {
        if (filter === 0) request.noPut = true
        else request.noDelete = true
      }
      break
    case 6:
      request.prevKv = reader.boolean()
      break
    case 7:
      request.watchId = reader.number()
      break
    case 8:
      request.fragment = reader.boolean()
      break
    default:
      reader.skip()
  }
}

/** A repeated enumeration, packed or not. The values here fit one byte. */
function readEnums(reader: Cursor): readonly number[] {
  if (reader.wireType !== 2) return [reader.number()]
  reader.skipBytes()
  return [...reader.buffer.subarray(reader.from, reader.to)]
}
