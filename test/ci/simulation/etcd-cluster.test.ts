/** The simulated etcd as a cluster, in virtual time: elections, failures, what survives them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  decodeRangeResult,
  decodeTxnResult,
  decodeWatchMessage,
  type WatchMessage,
} from '../../../src/etcd/protocol/hot-messages.ts'
import { type ClientStream, FakeWorld } from '../../simulation/etcd/checks/fake-world.ts'
import { message, nested } from '../../simulation/etcd/checks/messages.ts'
import type { CallReply } from '../../simulation/etcd/contract.ts'
import { numbersOf } from '../../simulation/etcd/messages.ts'

const put = (key: string, value: string, lease: number = 0): Buffer =>
  nested(2, nested(2, message([1, key], [2, value], [3, lease])))
const range = (key: string): Buffer => message([1, key])
const serializable = (key: string): Buffer => message([1, key], [7, true])
const watchAll = (start: number): Buffer =>
  nested(1, message([1, '\0'], [2, '\0'], [3, start], [6, true], [8, true]))
const progress: Buffer = nested(3, Buffer.alloc(0))

function valueIn(reply: CallReply | undefined): string | undefined {
  if (reply === undefined || !('message' in reply)) return undefined
  return decodeRangeResult(reply.message).kvs[0]?.value.toString()
}

function received(stream: ClientStream): readonly WatchMessage[] {
  return stream.messages.map((bytes) => decodeWatchMessage(bytes))
}

function eventsOf(stream: ClientStream): readonly string[] {
  return received(stream).flatMap(({ events }) =>
    events.map(({ type, kv }) => `${type} ${kv.key} ${kv.modRevision}`),
  )
}

/** The members other than this one, in order. */
function others(member: number): readonly [number, number] {
  return [(member + 1) % 3, (member + 2) % 3]
}

/** A cluster of three with a leader. */
function started(seed?: number): { readonly world: FakeWorld; readonly leader: number } {
  const world = new FakeWorld({ size: 3, seed })
  return { world, leader: world.elect() }
}

describe('the leader of a simulated cluster', () => {
  test('is one of three members, and the others follow it', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { world, leader } = started(seed)
      const reply = world.call((leader + 1) % 3, 'KV/Txn', put('a', 'x'))
      assert.ok('message' in reply && decodeTxnResult(reply.message).revision === 2)
    }
  })

  test('is replaced within seconds after a crash, and no committed data is lost', () => {
    const { world, leader } = started()
    world.call(leader, 'KV/Txn', put('a', 'x'))
    world.cluster.crash(leader)
    const [next] = others(leader)
    world.until(() => world.cluster.leader !== undefined, 5_000)
    world.advance(100)
    assert.equal(valueIn(world.call(next, 'KV/Range', range('a'))), 'x')
    world.cluster.restart(leader)
    world.advance(500)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), 'x')
  })

  test('steps down without a majority, and its writes time out', () => {
    const { world, leader } = started()
    world.isolate(leader)
    const sent = world.send(leader, 'KV/Txn', put('a', 'lost'))
    const [next] = others(leader)
    world.until(() => world.cluster.leader !== undefined && world.cluster.leader !== leader)
    world.advance(200)
    world.call(next, 'KV/Txn', put('b', 'x'))
    world.until(() => sent.reply !== undefined)
    assert.deepEqual(sent.reply, {
      code: 14,
      details: 'etcdserver: request timed out',
    })
    const refused = world.send(leader, 'KV/Range', range('b'), { needsLeader: true })
    assert.deepEqual(refused.reply, { code: 14, details: 'etcdserver: no leader' })
    world.isolate(leader, false)
    world.advance(1_000)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('b'))), 'x')
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), undefined)
  })

  test('is not disturbed by a member that returns', () => {
    const { world, leader } = started()
    const [away] = others(leader)
    world.isolate(away)
    world.advance(30_000)
    const term = termOf(world, leader)
    world.isolate(away, false)
    world.advance(5_000)
    assert.equal(world.cluster.leader, leader)
    assert.equal(termOf(world, leader), term)
    world.call(leader, 'KV/Txn', put('a', 'x'))
    assert.equal(valueIn(world.call(away, 'KV/Range', range('a'))), 'x')
  })

  test('learns of its successor when it continues after a stop', () => {
    const { world, leader } = started()
    world.call(leader, 'KV/Txn', put('a', 'old'))
    world.cluster.pause(leader)
    const early = world.send(leader, 'KV/Range', range('a'))
    const [next] = others(leader)
    world.until(() => world.cluster.leader !== leader)
    world.advance(500)
    world.call(next, 'KV/Txn', put('a', 'new'))
    world.cluster.resume(leader)
    assert.equal(valueIn(world.call(leader, 'KV/Range', serializable('a'))), 'old')
    world.until(() => early.reply !== undefined)
    assert.notEqual(valueIn(early.reply), 'old')
    world.advance(1_000)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), 'new')
  })

  test('moves on request, without a gap in the data', () => {
    const { world, leader } = started()
    const [to] = others(leader)
    world.call(leader, 'KV/Txn', put('a', 'x'))
    world.cluster.moveLeader(to)
    world.advance(100)
    assert.equal(world.cluster.leader, to)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), 'x')
  })

  test('schedules nothing while nothing happens', () => {
    const { world } = started()
    world.advance(10_000)
    const before = world.scheduled
    world.advance(3_600_000)
    assert.equal(world.scheduled, before)
  })

  function termOf(world: FakeWorld, member: number): bigint | undefined {
    const reply = world.call(member, 'Maintenance/Status', Buffer.alloc(0))
    return 'message' in reply ? numbersOf(reply.message).get(6) : undefined
  }
})

describe('a write', () => {
  test('is reported once, when a majority has it, before its reply', () => {
    const { world, leader } = started()
    const [follower] = others(leader)
    for (let index = 0; index < 50; index++) {
      const sent = world.send(follower, 'KV/Txn', put(`k${index}`, 'x'))
      while (sent.reply === undefined) {
        world.until(() => sent.reply !== undefined)
        assert.equal(world.commits.at(-1)?.revision, index + 2)
      }
    }
    assert.deepEqual(
      world.commits.map(({ revision }) => revision),
      Array.from({ length: 50 }, (_, index) => index + 2),
    )
  })

  test('is lost when its leader crashes before it is replicated', () => {
    const { world, leader } = started()
    world.isolate(leader)
    world.send(leader, 'KV/Txn', put('a', 'x'))
    world.cluster.crash(leader)
    world.isolate(leader, false)
    world.until(() => world.cluster.leader !== undefined)
    world.cluster.restart(leader)
    world.advance(2_000)
    for (const member of [0, 1, 2]) {
      assert.equal(valueIn(world.call(member, 'KV/Range', range('a'))), undefined)
    }
    assert.equal(world.commits.length, 0)
  })

  test('may be committed after its leader has crashed, if a follower has it', () => {
    let committed = 0
    for (let seed = 1; seed <= 20; seed++) {
      const { world, leader } = started(seed)
      world.send(leader, 'KV/Txn', put('a', 'x'))
      world.advance(0.5)
      world.isolate(leader)
      world.cluster.crash(leader)
      world.until(() => world.cluster.leader !== undefined)
      world.advance(500)
      const [next] = others(leader)
      const value = valueIn(world.call(next, 'KV/Range', range('a')))
      assert.equal(value, world.commits.length === 0 ? undefined : 'x')
      committed += world.commits.length
    }
    assert.ok(committed > 0 && committed < 20, `${committed} of 20`)
  })

  test('waits for a leader, and times out without one', () => {
    const { world, leader } = started()
    const [one, two] = others(leader)
    world.cluster.crash(one)
    world.cluster.crash(two)
    world.advance(3_000)
    assert.equal(world.cluster.leader, undefined)
    const late = world.send(leader, 'KV/Txn', put('a', 'x'))
    world.advance(7_100)
    assert.deepEqual(late.reply, { code: 4, details: 'context deadline exceeded' })
    const waiting = world.send(leader, 'KV/Txn', put('a', 'y'))
    world.cluster.restart(one)
    world.until(() => waiting.reply !== undefined)
    assert.equal(waiting.reply?.code, 0)
  })
})

describe('a member without a majority', () => {
  const ask = (world: FakeWorld, member: number) => {
    const startedAt = world.now
    const sent: Record<string, { reply: CallReply | undefined; ms: number }> = {}
    const send = (name: string, path: string, request: Buffer) => {
      const noted = { reply: undefined as CallReply | undefined, ms: 0 }
      sent[name] = noted
      world.cluster.members[member]?.call(
        `/etcdserverpb.${path}`,
        request,
        { needsLeader: false },
        (reply) => {
          noted.reply = reply
          noted.ms = Math.round(world.now - startedAt)
        },
      )
    }
    send('write', 'KV/Txn', put('a', 'x'))
    send('read', 'KV/Range', range('a'))
    send('ttl', 'Lease/LeaseTimeToLive', message([1, 5]))
    send('renewal', 'Lease/LeaseKeepAlive', message([1, 5]))
    return sent
  }
  const outcome = (noted: { reply: CallReply | undefined } | undefined): string | undefined => {
    const reply = noted?.reply
    if (reply === undefined) return undefined
    return 'details' in reply ? `${reply.code} ${reply.details}` : 'ok'
  }

  // All of this was seen in the same way with three members of etcd 3.5.30.
  test('replies what etcd replies, after the same time', () => {
    const { world, leader } = started()
    world.call(leader, 'Lease/LeaseGrant', message([1, 60], [2, 5]))
    for (const member of others(leader)) world.cluster.crash(member)
    const early = ask(world, leader)
    world.advance(4_000)
    const late = ask(world, leader)
    world.advance(14_000)
    const timedOut = '14 etcdserver: request timed out'
    const noLeader = '14 etcdserver: no leader'
    const seen = (asked: typeof early) =>
      Object.entries(asked).map(([name, noted]) => [name, outcome(noted)])
    assert.deepEqual(seen(early), [
      ['write', timedOut],
      ['read', timedOut],
      ['ttl', 'ok'],
      ['renewal', 'ok'],
    ])
    assert.deepEqual(seen(late), [
      ['write', '4 context deadline exceeded'],
      ['read', timedOut],
      ['ttl', noLeader],
      ['renewal', noLeader],
    ])
    assert.deepEqual([early['write']?.ms, late['write']?.ms], [7_000, 7_000])
    // The second read waits until the first has given up, and then as long again.
    assert.equal(late['read']?.ms, 10_000)
  })

  test('replies what a follower of etcd replies whose leader has died', () => {
    const { world, leader } = started()
    world.call(leader, 'Lease/LeaseGrant', message([1, 60], [2, 5]))
    world.cluster.crash(leader)
    const [follower] = others(leader)
    const asked = ask(world, follower)
    world.advance(8_000)
    // Only a member that became leader itself says why.
    const reason =
      world.cluster.leader === follower ? ', possibly due to previous leader failure' : ''
    assert.equal(outcome(asked['write']), `14 etcdserver: request timed out${reason}`)
    assert.equal(outcome(asked['read']), '14 etcdserver: leader changed')
    assert.equal(outcome(asked['ttl']), 'ok')
  })
})

describe('a read', () => {
  test('waits for the newest write at a member that is behind, if it is linearizable', () => {
    const { world, leader } = started()
    const [behind] = others(leader)
    world.call(leader, 'KV/Txn', put('a', 'old'))
    world.advance(100)
    world.setLink(leader, behind, false)
    world.cluster.networkChanged()
    world.call(leader, 'KV/Txn', put('a', 'new'))
    const read = world.send(behind, 'KV/Range', range('a'))
    assert.equal(valueIn(world.call(behind, 'KV/Range', serializable('a'))), 'old')
    world.advance(300)
    assert.equal(read.reply, undefined)
    world.setLink(leader, behind, true)
    world.cluster.networkChanged()
    world.until(() => read.reply !== undefined)
    assert.equal(valueIn(read.reply), 'new')
  })

  test('times out without a majority', () => {
    const { world, leader } = started()
    world.isolate(leader)
    const sent = world.send(leader, 'KV/Range', range('a'))
    world.advance(8_000)
    assert.deepEqual(sent.reply, { code: 14, details: 'etcdserver: request timed out' })
  })

  test('fails when the leader changes during an election', () => {
    const { world, leader } = started()
    const [member] = others(leader)
    world.cluster.crash(leader)
    const sent = world.send(member, 'KV/Range', range('a'))
    world.until(() => sent.reply !== undefined)
    assert.deepEqual(sent.reply, { code: 14, details: 'etcdserver: leader changed' })
  })
})

describe('a watch', () => {
  test('continues over a failover, each revision once', () => {
    const { world, leader } = started()
    const [member] = others(leader)
    const stream = world.watch(member, watchAll(2))
    for (let index = 0; index < 5; index++) world.call(member, 'KV/Txn', put(`a${index}`, 'x'))
    world.cluster.crash(leader)
    world.until(() => world.cluster.leader !== undefined)
    world.advance(200)
    for (let index = 5; index < 10; index++) world.call(member, 'KV/Txn', put(`a${index}`, 'x'))
    world.advance(200)
    const expected = Array.from({ length: 10 }, (_, index) => `put a${index} ${index + 2}`)
    assert.deepEqual(eventsOf(stream), expected)
    assert.equal(stream.end, undefined)
  })

  test('ends without a leader for three election timeouts, if it needs one', () => {
    const { world, leader } = started()
    const [away] = others(leader)
    const needing = world.watch(away, watchAll(1))
    const other = world.watch(away, watchAll(1), { needsLeader: false })
    world.isolate(away)
    world.advance(2_900)
    assert.equal(needing.end, undefined)
    world.advance(3_000)
    assert.deepEqual(needing.end, { code: 14, details: 'etcdserver: no leader' })
    assert.equal(other.end, undefined)
    const refused = world.watch(away, watchAll(1))
    assert.deepEqual(refused.end, { code: 14, details: 'etcdserver: no leader' })
  })

  test('continues from the history for a slow client, or is cancelled by a compaction', () => {
    for (const isCompacted of [false, true]) {
      const world = new FakeWorld({ size: 1 })
      world.elect()
      const stream = world.watch(0, watchAll(2))
      world.advance(300)
      stream.isReading = false
      for (let index = 0; index < 400; index++) world.call(0, 'KV/Txn', put('a', `${index}`))
      world.advance(300)
      // Its buffer is full: there is no progress to report.
      const sentBefore = stream.messages.length
      stream.input.receive(progress)
      if (isCompacted) world.call(0, 'KV/Compact', message([1, 390]))
      stream.isReading = true
      assert.equal(stream.messages.length, sentBefore)
      stream.input.onDrain()
      world.advance(300)
      const messages = received(stream)
      if (isCompacted) {
        assert.deepEqual([messages.at(-1)?.canceled, messages.at(-1)?.compactRevision], [true, 390])
      } else {
        const expected = Array.from({ length: 400 }, (_, index) => `put a ${index + 2}`)
        assert.deepEqual(eventsOf(stream), expected)
      }
    }
  })

  test('sends a large response in fragments of whole events', () => {
    const world = new FakeWorld({ size: 1, watchFragmentBytes: 1_000 })
    world.elect()
    const stream = world.watch(0, watchAll(0))
    const ops = Array.from({ length: 20 }, (_, index) => put(`k${index}`, 'v'.repeat(200)))
    world.call(0, 'KV/Txn', Buffer.concat(ops))
    const messages = received(stream).slice(1)
    assert.ok(messages.length > 4)
    assert.deepEqual(
      messages.map(({ fragment }) => fragment),
      messages.map((_, index) => index < messages.length - 1),
    )
    assert.ok(stream.messages.every(({ length }) => length < 1_000))
    assert.equal(eventsOf(stream).length, 20)
  })

  test('reports progress by itself every ten minutes when nothing happens', () => {
    const world = new FakeWorld({ size: 1 })
    world.elect()
    const stream = world.watch(0, nested(1, message([1, 'a'], [4, true])))
    world.advance(23 * 60_000)
    assert.equal(received(stream).length, 3)
  })
})

describe('a lease', () => {
  const grant = (id: number, ttl: number): Buffer => message([1, ttl], [2, id])
  const ttlOf = (world: FakeWorld, member: number, id: number): number => {
    const reply = world.call(member, 'Lease/LeaseTimeToLive', message([1, id]))
    assert.ok('message' in reply)
    return Number(numbersOf(reply.message).get(3) ?? 0n)
  }

  test('expires by the clock of the leader and takes its keys with it', () => {
    const { world, leader } = started()
    const [member] = others(leader)
    world.call(member, 'Lease/LeaseGrant', grant(7, 10))
    world.call(member, 'KV/Txn', Buffer.concat([put('a', 'x', 7), put('b', 'x', 7)]))
    world.advance(4_000)
    assert.equal(ttlOf(world, member, 7), 5)
    world.call(member, 'Lease/LeaseKeepAlive', message([1, 7]))
    world.advance(9_000)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), 'x')
    world.advance(2_000)
    assert.equal(valueIn(world.call(leader, 'KV/Range', range('a'))), undefined)
    assert.equal(world.commits.at(-1)?.changes.length, 2)
    assert.equal(ttlOf(world, member, 7), -1)
    assert.equal(ttlOf(world, leader, 7), -1)
  })

  test('gets its full time again from a new leader', () => {
    const { world, leader } = started()
    const [member] = others(leader)
    world.call(member, 'Lease/LeaseGrant', grant(7, 10))
    world.call(member, 'KV/Txn', put('a', 'x', 7))
    world.advance(8_000)
    world.cluster.crash(leader)
    world.until(() => world.cluster.leader !== undefined)
    world.advance(100)
    assert.equal(ttlOf(world, member, 7), 10)
    world.advance(9_900)
    assert.equal(valueIn(world.call(member, 'KV/Range', range('a'))), 'x')
    world.advance(2_000)
    assert.equal(valueIn(world.call(member, 'KV/Range', range('a'))), undefined)
  })
})

describe('compaction and space', () => {
  test('drop history that every member has compacted, and not before', () => {
    const { world, leader } = started()
    const [behind, other] = others(leader)
    for (let index = 0; index < 10; index++) world.call(leader, 'KV/Txn', put('a', `${index}`))
    world.advance(100)
    world.isolate(behind)
    world.call(leader, 'KV/Compact', message([1, 10]))
    const at5 = message([1, 'a'], [4, 5], [7, true])
    assert.equal(valueIn(world.call(behind, 'KV/Range', at5)), '3')
    assert.equal(world.call(leader, 'KV/Range', at5).code, 11)
    world.isolate(behind, false)
    world.advance(2_000)
    assert.equal(world.call(behind, 'KV/Range', at5).code, 11)
    assert.equal(world.call(other, 'KV/Range', at5).code, 11)
  })

  test('refuse puts to a full database until an operator frees space', () => {
    const world = new FakeWorld({ size: 3, quotaBytes: 60_000 })
    const leader = world.elect()
    const [member] = others(leader)
    let refused: CallReply | undefined
    for (let index = 0; index < 300 && refused === undefined; index++) {
      const reply = world.call(member, 'KV/Txn', put('a', 'v'.repeat(200)))
      if (reply.code !== 0) refused = reply
    }
    const noSpace = { code: 8, details: 'etcdserver: mvcc: database space exceeded' }
    assert.deepEqual(refused, noSpace)
    assert.deepEqual(world.call(leader, 'KV/Txn', put('a', 'x')), noSpace)
    assert.equal(world.call(leader, 'KV/Txn', nested(2, nested(3, message([1, 'b'])))).code, 0)
    world.call(leader, 'KV/Compact', message([1, world.cluster.revision]))
    world.advance(100)
    for (const index of [0, 1, 2]) world.cluster.defragment(index)
    world.cluster.disarm()
    world.advance(200)
    assert.equal(world.call(leader, 'KV/Txn', put('a', 'x')).code, 0)
  })
})

describe('a restore', () => {
  test('brings back the state of the snapshot, with the same revisions', () => {
    const { world, leader } = started()
    world.call(leader, 'KV/Txn', put('a', 'saved'))
    const snapshot = world.cluster.snapshot()
    world.call(leader, 'KV/Txn', put('a', 'lost'))
    world.cluster.restore(snapshot, { bump: 0 })
    const next = world.elect()
    assert.equal(valueIn(world.call(next, 'KV/Range', range('a'))), 'saved')
    assert.equal(world.cluster.revision, 2)
    const reply = world.call(next, 'KV/Txn', put('a', 'again'))
    assert.ok('message' in reply && decodeTxnResult(reply.message).revision === 3)
  })

  test('continues far after the snapshot with a bump, and all before is compacted', () => {
    const { world, leader } = started()
    for (let index = 0; index < 5; index++) world.call(leader, 'KV/Txn', put('a', `${index}`))
    world.cluster.restore(world.cluster.snapshot(), { bump: 1_000_000_000 })
    const next = world.elect()
    assert.equal(world.cluster.revision, 1_000_000_006)
    assert.equal(world.call(next, 'KV/Range', message([1, 'a'], [4, 6])).code, 11)
    assert.equal(valueIn(world.call(next, 'KV/Range', range('a'))), '4')
    const stream = world.watch(next, watchAll(6))
    world.advance(300)
    assert.equal(received(stream).at(-1)?.compactRevision, 1_000_000_006)
  })
})
