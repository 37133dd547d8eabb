import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import {
  decodeRangeResult,
  decodeTxnResult,
  decodeWatchMessage,
  type WatchMessage,
} from './protocol/hot-messages.ts'
import type { RangeResult, TxnResult } from './protocol/protocol.ts'
import {
  type AlarmResponse,
  AlarmResponseSchema,
  type CompactionResponse,
  CompactionResponseSchema,
  type LeaseGrantResponse,
  LeaseGrantResponseSchema,
  type LeaseKeepAliveResponse,
  LeaseKeepAliveResponseSchema,
  type LeaseRevokeResponse,
  LeaseRevokeResponseSchema,
  type LeaseTimeToLiveResponse,
  LeaseTimeToLiveResponseSchema,
  type StatusResponse,
  StatusResponseSchema,
} from './protocol/rpc_pb.ts'
import type { CallFailure } from './transport/call-failure.ts'
import type { Client } from './transport/client.ts'
import type { DuplexCall } from './transport/duplex-call.ts'

/** How a unary call is made, and what may be done when it fails. */
export interface Method<Response> {
  readonly path: string
  /** Whether the call can change anything: then it is never sent twice. */
  readonly write: boolean
  /** Whether a member without a leader should refuse at once instead of letting the call wait. */
  readonly needsLeader: boolean
  /** etcd offers the method only as a stream: one request is sent and one response is read. */
  readonly stream?: boolean
  /** Largest accepted response message, in bytes. */
  readonly bytesMax: number
  decode(message: Buffer): Response
}

/**
 * Pages aim at 4 MB, and are asked for again with fewer keys when their values are larger than
 * those before. etcd splits what it sends on a watch at its own limit for requests, 1.5 MiB by
 * default; a watch that does not let it split (watch-stream.ts) gets 250,000 deletes at once.
 */
const pageBytesMax = 32 * 1024 * 1024
/** A batch of 100 writes may return the values in their way, each of 1.5 MiB by default. */
const txnBytesMax = 160 * 1024 * 1024
/** Leases, status and alarms: a few numbers and names. */
const smallBytesMax = 1024 * 1024

export const methods: {
  readonly range: Method<RangeResult>
  readonly txn: Method<TxnResult>
  readonly readOnlyTxn: Method<TxnResult>
  readonly compact: Method<CompactionResponse>
  readonly leaseGrant: Method<LeaseGrantResponse>
  readonly leaseRevoke: Method<LeaseRevokeResponse>
  readonly leaseKeepAlive: Method<LeaseKeepAliveResponse>
  readonly leaseTimeToLive: Method<LeaseTimeToLiveResponse>
  readonly status: Method<StatusResponse>
  readonly alarm: Method<AlarmResponse>
} = {
  range: read('KV/Range', decodeRangeResult, pageBytesMax),
  txn: write('KV/Txn', decodeTxnResult, txnBytesMax),
  readOnlyTxn: read('KV/Txn', decodeTxnResult, txnBytesMax),
  compact: write('KV/Compact', decoder(CompactionResponseSchema)),
  leaseGrant: write('Lease/LeaseGrant', decoder(LeaseGrantResponseSchema)),
  leaseRevoke: write('Lease/LeaseRevoke', decoder(LeaseRevokeResponseSchema)),
  // Renewal is idempotent, so this may be retried like a read.
  leaseKeepAlive: {
    ...read('Lease/LeaseKeepAlive', decoder(LeaseKeepAliveResponseSchema)),
    stream: true,
  },
  leaseTimeToLive: read('Lease/LeaseTimeToLive', decoder(LeaseTimeToLiveResponseSchema)),
  status: {
    ...read('Maintenance/Status', decoder(StatusResponseSchema)),
    needsLeader: false,
  },
  alarm: read('Maintenance/Alarm', decoder(AlarmResponseSchema)),
}

/** Encodes a message with the generated code. */
export function encode<Desc extends DescMessage>(
  schema: Desc,
  init: MessageInitShape<Desc>,
): Buffer {
  const bytes = toBinary(schema, create(schema, init))
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Sends the call once. Returns a cancel function, after which `done` may or may not be called. */
export function startCall<Response>(
  client: Client,
  method: Method<Response>,
  options: { readonly request: Buffer; readonly timeoutMs: number },
  done: (failure: CallFailure | undefined, response?: Response) => void,
): () => void {
  if (method.stream === true) return startSingleExchange(client, method, options, done)
  const { request: message, timeoutMs } = options
  const { path, needsLeader, decode, bytesMax } = method
  return client.unary({ path, needsLeader, decode, bytesMax, message, timeoutMs }, done)
}

export type WatchCall = DuplexCall<WatchMessage>

/** Opens a watch stream. A member that loses its leader ends it, so the watch can fail over. */
export function startWatch(client: Client): WatchCall {
  const path = '/etcdserverpb.Watch/Watch'
  const bytesMax = pageBytesMax
  return client.duplex({ path, needsLeader: true, decode: decodeWatchMessage, bytesMax })
}

function startSingleExchange<Response>(
  client: Client,
  { path, needsLeader, decode, bytesMax }: Method<Response>,
  { request, timeoutMs }: { readonly request: Buffer; readonly timeoutMs: number },
  done: (failure: CallFailure | undefined, response?: Response) => void,
): () => void {
  const call = client.duplex({ path, needsLeader, decode, bytesMax, timeoutMs })
  call.on('error', (failure: CallFailure) => done(failure))
  call.once('data', (response: Response) => {
    done(undefined, response)
    call.end()
    // Read to the end, or the stream stays open.
    call.resume()
  })
  call.write(request)
  return () => call.cancel()
}

export const reconnectFirstMs = 100
export const reconnectMostMs = 1_000

function read<Response>(
  name: string,
  decode: (message: Buffer) => Response,
  bytesMax = smallBytesMax,
): Method<Response> {
  return { path: `/etcdserverpb.${name}`, write: false, needsLeader: true, decode, bytesMax }
}

function write<Response>(
  name: string,
  decode: (message: Buffer) => Response,
  bytesMax = smallBytesMax,
): Method<Response> {
  return { path: `/etcdserverpb.${name}`, write: true, needsLeader: true, decode, bytesMax }
}

function decoder<Desc extends DescMessage>(schema: Desc): (message: Buffer) => MessageShape<Desc> {
  return (message) => fromBinary(schema, message)
}
