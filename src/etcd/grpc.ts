import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import {
  type ChannelOptions,
  type Client,
  type ClientDuplexStream,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js'
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

/** How a unary call is made, and what may be done when it fails. */
export interface Method<Response> {
  readonly path: string
  /** Whether the call can change anything: then it is never sent twice. */
  readonly write: boolean
  /** Whether a member without a leader should refuse at once instead of letting the call wait. */
  readonly needsLeader: boolean
  /** etcd offers the method only as a stream: one request is sent and one response is read. */
  readonly stream?: boolean
  decode(message: Buffer): Response
}

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
  range: read('KV/Range', decodeRangeResult),
  txn: write('KV/Txn', decodeTxnResult),
  readOnlyTxn: read('KV/Txn', decodeTxnResult),
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
  options: { readonly request: Buffer; readonly deadline: Date },
  done: (error: ServiceError | undefined, response?: Response) => void,
): () => void {
  const metadata = method.needsLeader ? leaderMetadata : plainMetadata
  if (method.stream === true) return startSingleExchange(client, method, options, done)
  const call = client.makeUnaryRequest(
    method.path,
    asIs,
    method.decode,
    options.request,
    metadata,
    { deadline: options.deadline },
    (error, response) => done(error ?? undefined, response),
  )
  return () => call.cancel()
}

export type WatchCall = ClientDuplexStream<Buffer, WatchMessage>

/** Opens a watch stream. A member that loses its leader ends it, so the watch can fail over. */
export function startWatch(client: Client): WatchCall {
  return client.makeBidiStreamRequest(
    '/etcdserverpb.Watch/Watch',
    asIs,
    decodeWatchMessage,
    leaderMetadata,
  )
}

function startSingleExchange<Response>(
  client: Client,
  method: Method<Response>,
  options: { readonly request: Buffer; readonly deadline: Date },
  done: (error: ServiceError | undefined, response?: Response) => void,
): () => void {
  const call: ClientDuplexStream<Buffer, Response> = client.makeBidiStreamRequest(
    method.path,
    asIs,
    method.decode,
    method.needsLeader ? leaderMetadata : plainMetadata,
    { deadline: options.deadline },
  )
  call.on('error', (error: ServiceError) => done(error))
  call.once('data', (response: Response) => {
    done(undefined, response)
    call.end()
    // Read to the end, or the stream stays open.
    call.resume()
  })
  call.write(options.request)
  return () => call.cancel()
}

export const reconnectFirstMs = 100
export const reconnectMostMs = 1_000

/** Options of every connection. */
export const channelOptions: ChannelOptions = {
  // etcd allows a ping every 5 s while a call is in flight, and none otherwise; it responds to more
  // with GOAWAY. connection.ts probes idle connections instead.
  'grpc.keepalive_time_ms': 5_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.keepalive_permit_without_calls': 0,
  'grpc.initial_reconnect_backoff_ms': reconnectFirstMs,
  'grpc.max_reconnect_backoff_ms': reconnectMostMs,
  // Only calls.ts decides about retries.
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // etcd is never behind the proxy that environment variables may set.
  'grpc.enable_http_proxy': 0,
  // A connection is not shared between channels, so closing the channel closes it.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_channelz': 0,
  // etcd sets the limit: it sends up to a thousand revisions in one watch message when a watcher
  // has much to catch up on, and refusing that would stop the watch for good. Ranges are bounded
  // by their limit.
  'grpc.max_receive_message_length': -1,
  // etcd refuses larger messages than its own limit, with a clear error.
  'grpc.max_send_message_length': -1,
  // With the default of 64 KiB a page of events would take hundreds of round trips.
  'grpc-node.flow_control_window': 4 * 1024 * 1024,
}

const plainMetadata: Metadata = new Metadata()
const leaderMetadata: Metadata = new Metadata()
leaderMetadata.set('hasleader', 'true')

function asIs(message: Buffer): Buffer {
  return message
}

function read<Response>(name: string, decode: (message: Buffer) => Response): Method<Response> {
  return { path: `/etcdserverpb.${name}`, write: false, needsLeader: true, decode }
}

function write<Response>(name: string, decode: (message: Buffer) => Response): Method<Response> {
  return { path: `/etcdserverpb.${name}`, write: true, needsLeader: true, decode }
}

function decoder<Desc extends DescMessage>(schema: Desc): (message: Buffer) => MessageShape<Desc> {
  return (message) => fromBinary(schema, message)
}
