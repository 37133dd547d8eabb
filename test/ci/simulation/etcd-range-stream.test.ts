/** Range streams of the simulated etcd, message by message as those of real members. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { FakeWorld } from '../../simulation/etcd/checks/fake-world.ts'
import { message, nested } from '../../simulation/etcd/checks/messages.ts'
import { RealMember } from '../../simulation/etcd/checks/real-member.ts'
import { startEtcd } from '../../support/etcd.ts'
import { RangeStreamResponseSchema } from '../../support/etcd-protocol/rpc_pb.ts'
import { etcdVersions } from '../../support/etcd-versions.ts'

const txns = 10
const putsPerTxn = 70

/** Puts of different sizes, and afterwards some of the same keys again. */
function writes(): readonly Buffer[] {
  return Array.from({ length: txns }, (_, txn) => {
    const puts = Array.from({ length: putsPerTxn }, (_, put) => {
      const key = `k${String((txn * putsPerTxn + put * 3) % 650).padStart(4, '0')}`
      return nested(2, nested(2, message([1, key], [2, 'v'.repeat((txn * put * 37) % 9_000)])))
    })
    return Buffer.concat([...new Map(puts.map((put) => [put.toString('latin1'), put])).values()])
  })
}

const all = [
  [1, 'k'],
  [2, 'l'],
] as const
const requests = [
  message(...all),
  message(...all, [4, 5]),
  message(...all, [4, 3]),
  message(...all, [4, 99]),
  message([1, 'k0001'], [2, 'k0001x']),
  message([1, 'x'], [2, 'y']),
  message([1, ''], [2, 'y']),
]

interface Exchange {
  readonly messages: readonly Buffer[]
  readonly end: { readonly code: number; readonly details: string } | undefined
}

/** What can agree: not the id of the member. */
function form({ messages, end }: Exchange): unknown {
  const parts = messages.map((part) => {
    const found = fromBinary(RangeStreamResponseSchema, part).rangeResponse
    const kvs = found?.kvs.map(({ key, modRevision }) => `${Buffer.from(key)}@${modRevision}`)
    return { kvs, more: found?.more, count: found?.count, revision: found?.header?.revision }
  })
  return { parts, end }
}

for (const { name, binary, skip } of etcdVersions) {
  describe(`the range streams of ${name}`, { skip }, () => {
    test('are those of the simulated etcd', async () => {
      await using etcd = await startEtcd({ binary })
      const real = new RealMember(etcd.member(0).endpoint)
      const probe = await real.exchange('KV/RangeStream', requests[0] ?? Buffer.alloc(0))
      const rangeStreamShare = probe.end.code === 0 ? 1 : 0
      const watchFragmentBytes = 1.5 * 1024 * 1024
      const world = new FakeWorld({ size: 1, rangeStreamShare, watchFragmentBytes })
      world.until(() => world.cluster.leader !== undefined, 10_000)
      const compaction = message([1, 4])
      for (const [path, request] of [
        ...writes().map((write) => ['KV/Txn', write] as const),
        ['KV/Compact', compaction] as const,
      ]) {
        const simulated = world.call(0, path, request)
        const { code } = await real.call(path, request)
        assert.deepEqual([code, simulated.code], [0, 0])
      }
      for (const request of requests) {
        const simulated = world.rangeStream(0, request)
        world.until(() => simulated.end !== undefined, 10_000)
        const expected = await real.exchange('KV/RangeStream', request)
        assert.deepEqual(form(simulated), form(expected))
      }
      real.close()
    })
  })
}
