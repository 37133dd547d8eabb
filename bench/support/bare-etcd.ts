import { create, toBinary } from '@bufbuild/protobuf'
import { PutRequestSchema, RangeRequestSchema } from '../../test/support/etcd-protocol/rpc_pb.ts'
import { loadRate } from './h2load.ts'

/** Puts a second that etcd can serve to a client without any other work. */
export function barePutRate(
  endpoint: string,
  seconds: number,
  valueBytes: number,
): Promise<number> {
  const key = Buffer.from('/bench-bare/events/default/pod-1.17f3a6b2c4d5e6f7')
  const value = Buffer.alloc(valueBytes, 'x')
  const message = toBinary(PutRequestSchema, create(PutRequestSchema, { key, value }))
  return callRate(`${endpoint}/etcdserverpb.KV/Put`, seconds, message)
}

/** The same for linearizable reads of one key. */
export function bareRangeRate(endpoint: string, seconds: number, key: Buffer): Promise<number> {
  const message = toBinary(RangeRequestSchema, create(RangeRequestSchema, { key }))
  return callRate(`${endpoint}/etcdserverpb.KV/Range`, seconds, message)
}

function callRate(url: string, seconds: number, message: Uint8Array): Promise<number> {
  // One byte for "not compressed", four for the length, then the request.
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return loadRate({
    url,
    amount: { seconds },
    connections: 8,
    streams: 32,
    headers: { 'content-type': 'application/grpc', te: 'trailers' },
    body: Buffer.concat([head, message]),
  })
}
