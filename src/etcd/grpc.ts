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
} from './hot-messages.ts'
import type { RangeResult, TxnResult } from './protocol.ts'
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
} from './rpc_pb.ts'

/** How one request with one answer is made, and what may be done when it fails. */
export interface Method<Answer> {
  readonly path: string
  /** Whether the call can change anything: then it is never made twice. */
  readonly write: boolean
  /** Whether a member that knows no leader should refuse at once instead of letting us wait. */
  readonly needsLeader: boolean
  /** etcd offers the method only as a stream; we send one request and take one answer. */
  readonly stream?: boolean
  decode(message: Buffer): Answer
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
  // Renewing twice is renewing once, so this may be repeated like a read.
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

/** Encodes one of the messages that have generated code. */
export function encode<Desc extends DescMessage>(
  schema: Desc,
  init: MessageInitShape<Desc>,
): Buffer {
  const bytes = toBinary(schema, create(schema, init))
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Makes the call once. Returns what cancels it; `done` is then called all the same, or never. */
export function startCall<Answer>(
  client: Client,
  method: Method<Answer>,
  options: { readonly request: Buffer; readonly deadline: Date },
  done: (error: ServiceError | undefined, answer?: Answer) => void,
): () => void {
  const metadata = method.needsLeader ? leaderMetadata : plainMetadata
  if (method.stream === true) return startExchange(client, method, options, done)
  const call = client.makeUnaryRequest(
    method.path,
    asIs,
    method.decode,
    options.request,
    metadata,
    { deadline: options.deadline },
    (error, answer) => done(error ?? undefined, answer),
  )
  return () => call.cancel()
}

export type WatchCall = ClientDuplexStream<Buffer, WatchMessage>

/** Opens a watch stream. A member that loses its leader ends it, so that we can go elsewhere. */
export function startWatch(client: Client): WatchCall {
  return client.makeBidiStreamRequest(
    '/etcdserverpb.Watch/Watch',
    asIs,
    decodeWatchMessage,
    leaderMetadata,
  )
}

function startExchange<Answer>(
  client: Client,
  method: Method<Answer>,
  options: { readonly request: Buffer; readonly deadline: Date },
  done: (error: ServiceError | undefined, answer?: Answer) => void,
): () => void {
  const call: ClientDuplexStream<Buffer, Answer> = client.makeBidiStreamRequest(
    method.path,
    asIs,
    method.decode,
    method.needsLeader ? leaderMetadata : plainMetadata,
    { deadline: options.deadline },
  )
  call.on('error', (error: ServiceError) => done(error))
  call.once('data', (answer: Answer) => {
    done(undefined, answer)
    call.end()
    // Read on to the end, or the stream stays open.
    call.resume()
  })
  call.write(options.request)
  return () => call.cancel()
}

export const reconnectFirstMs = 100
export const reconnectMostMs = 1_000

/** What we ask of every connection. */
export const channelOptions: ChannelOptions = {
  // etcd tolerates a ping every 5 s while a call is under way, and none at all otherwise: it answers
  // more with GOAWAY. Idle connections are looked after in connection.ts.
  'grpc.keepalive_time_ms': 5_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.keepalive_permit_without_calls': 0,
  'grpc.initial_reconnect_backoff_ms': reconnectFirstMs,
  'grpc.max_reconnect_backoff_ms': reconnectMostMs,
  // What may be repeated is decided in calls.ts and nowhere else.
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // etcd is never behind the proxy that the environment may name.
  'grpc.enable_http_proxy': 0,
  // A connection of ours is not shared with anybody, and closing it closes it.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_channelz': 0,
  // The bound is etcd's own: it sends up to a thousand revisions in one watch message when it has
  // much to catch up on, and refusing that would stop the watch for good. Ranges are bounded by
  // their limit.
  'grpc.max_receive_message_length': -1,
  // etcd refuses what is over its own limit, with an error that says so.
  'grpc.max_send_message_length': -1,
  // 64 KiB, the default, makes a page of events wait for hundreds of round trips.
  'grpc-node.flow_control_window': 4 * 1024 * 1024,
}

const plainMetadata: Metadata = new Metadata()
const leaderMetadata: Metadata = new Metadata()
leaderMetadata.set('hasleader', 'true')

function asIs(message: Buffer): Buffer {
  return message
}

function read<Answer>(name: string, decode: (message: Buffer) => Answer): Method<Answer> {
  return { path: `/etcdserverpb.${name}`, write: false, needsLeader: true, decode }
}

function write<Answer>(name: string, decode: (message: Buffer) => Answer): Method<Answer> {
  return { path: `/etcdserverpb.${name}`, write: true, needsLeader: true, decode }
}

function decoder<Desc extends DescMessage>(schema: Desc): (message: Buffer) => MessageShape<Desc> {
  return (message) => fromBinary(schema, message)
}
