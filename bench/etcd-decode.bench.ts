/**
 * Time that the hand-written codec of src/etcd saves against the generated code, and the cost of
 * checking the types of each event that is read:
 *   npm run bench -- decode
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { eventType } from '../src/api/schema.ts'
import { findTypeMismatch } from '../src/api/validation/type-check.ts'
import { decodeRangeResult, encodeTxn } from '../src/etcd/protocol/hot-messages.ts'
import type { Txn } from '../src/etcd/protocol/protocol.ts'
import { openValue } from '../src/storage/stored-form.ts'
import { RangeResponseSchema, TxnRequestSchema } from '../test/support/etcd-protocol/rpc_pb.ts'
import { benchEvent } from './memory/events.ts'

const keys = Array.from({ length: 10_000 }, (_, index) =>
  Buffer.from(`/registry/events/default/pod-${index}.17f3a6b2c4d5e6f7`),
)
const value = Buffer.alloc(1000, 'x')

const page = Buffer.from(
  toBinary(
    RangeResponseSchema,
    create(RangeResponseSchema, {
      header: { revision: 5_000_000n },
      kvs: keys.map((key, index) => ({
        key,
        value,
        createRevision: 4_000_000n + BigInt(index),
        modRevision: 4_000_000n + BigInt(index),
        version: 1n,
      })),
      more: true,
      count: 1_000_000n,
    }),
  ),
)

const creates = keys.slice(0, 100)
const txn: Txn = {
  success: creates.map((key) => ({
    type: 'txn',
    compare: [{ key, target: 'modRevision', to: 0 }],
    success: [{ type: 'put', key, value }],
    failure: [{ type: 'range', key }],
  })),
}

function encodeGenerated(): Uint8Array {
  return toBinary(
    TxnRequestSchema,
    create(TxnRequestSchema, {
      success: creates.map((key) => ({
        request: {
          case: 'requestTxn' as const,
          value: {
            compare: [{ target: 2, key, targetUnion: { case: 'modRevision' as const, value: 0n } }],
            success: [{ request: { case: 'requestPut' as const, value: { key, value } } }],
            failure: [{ request: { case: 'requestRange' as const, value: { key } } }],
          },
        },
      })),
    }),
  )
}

/** The median of `rounds` runs after as many to warm up, in milliseconds. */
function measure(rounds: number, run: () => unknown): number {
  const times: number[] = []
  for (let round = 0; round < rounds * 2; round++) {
    const before = performance.now()
    run()
    if (round >= rounds) times.push(performance.now() - before)
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0
}

const rows = [
  {
    what: 'decode a page of 10,000 keys (10.5 MB)',
    generated: measure(30, () => fromBinary(RangeResponseSchema, page)),
    byHand: measure(30, () => decodeRangeResult(page)),
  },
  {
    what: 'encode 100 creates in one transaction',
    generated: measure(300, encodeGenerated),
    byHand: measure(300, () => encodeTxn(txn)),
  },
]
for (const { what, generated, byHand } of rows) {
  process.stdout.write(
    `${what}: generated ${generated.toFixed(2)} ms, by hand ${byHand.toFixed(2)} ms\n`,
  )
}

const events = keys.map((_, index) => {
  const { key, body } = benchEvent(index)
  const value = Buffer.concat([Buffer.from('{"w":1794710508193,"i":0}\n'), body])
  return { key, value, parsed: JSON.parse(body.toString()) }
})
const openMs = measure(30, () => events.map(({ key, value }) => openValue(value, key)))
const checkMs = measure(30, () => events.map(({ parsed }) => findTypeMismatch(eventType, parsed)))
process.stdout.write(
  `read 10,000 events out of etcd's values: ${openMs.toFixed(2)} ms, of which ${checkMs.toFixed(2)} ms for types\n`,
)
