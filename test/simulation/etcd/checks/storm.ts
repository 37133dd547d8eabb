/** Random faults and requests on a simulated cluster, with checks of what etcd promises. */
import assert from 'node:assert/strict'
import {
  decodeRangeResult,
  decodeTxnResult,
  decodeWatchMessage,
} from '../../../../src/etcd/protocol/hot-messages.ts'
import { Random } from '../../../support/random.ts'
import type { CallReply } from '../contract.ts'
import { type ClientStream, FakeWorld } from './fake-world.ts'
import { message, nested } from './messages.ts'

const keys = ['a', 'b', 'c', 'd', 'e'] as const
const watchAll: Buffer = nested(1, message([1, '\0'], [2, '\0'], [3, 2], [8, true]))

interface Following {
  readonly member: number
  readonly stream: ClientStream
  /** The next revision to come. */
  next: number
}

export class Storm {
  readonly #world: FakeWorld
  readonly #random: Random
  readonly #size: number
  readonly #down = new Set<number>()
  readonly #paused = new Set<number>()
  #following: Following[] = []
  #values = 0
  readonly #acknowledged = new Map<string, number>()
  readonly counts: Map<string, number> = new Map()

  constructor(size: number, seed: number) {
    this.#size = size
    this.#world = new FakeWorld({ size, seed })
    this.#random = new Random(seed)
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step++) {
      this.#step()
      this.#world.advance(this.#random.between(0, 30))
      if (this.#random.chance(0.01)) this.#world.advance(this.#random.between(500, 9_000))
      this.#checkWatches()
    }
    this.#heal()
    this.#check()
  }

  #step(): void {
    const random = this.#random
    const kind = random.below(100)
    if (kind < 50) this.#write()
    else if (kind < 80) this.#read()
    else if (kind < 84) this.#watch()
    else if (kind < 85) this.#compact()
    else this.#fault()
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  #write(): void {
    const value = `v${++this.#values}`
    const request = nested(2, nested(2, message([1, this.#random.pick(keys)], [2, value])))
    this.#call('KV/Txn', request, (reply) => {
      if (reply.code !== 0 || !('message' in reply)) {
        this.#count(`write: ${'details' in reply ? reply.details : ''}`)
        return
      }
      this.#count('write')
      const { revision } = decodeTxnResult(reply.message)
      const commit = this.#world.commits[revision - 2]
      assert.equal(commit?.changes[0]?.value.toString(), value)
      this.#acknowledged.set(value, revision)
    })
  }

  /** A linearizable read has seen everything that was committed when it began. */
  #read(): void {
    const key = this.#random.pick(keys)
    const before = this.#world.cluster.revision
    this.#call('KV/Range', message([1, key]), (reply) => {
      if (reply.code !== 0 || !('message' in reply)) {
        this.#count(`read: ${'details' in reply ? reply.details : ''}`)
        return
      }
      this.#count('read')
      const { revision, kvs } = decodeRangeResult(reply.message)
      assert.ok(revision >= before, `read ${revision}, committed before it ${before}`)
      const newest = this.#world.commits
        .slice(0, revision - 1)
        .findLast(({ changes }) => changes[0]?.key.toString() === key)
      assert.equal(kvs[0]?.value.toString(), newest?.changes[0]?.value.toString())
    })
  }

  #call(path: string, request: Buffer, done: (reply: CallReply) => void): void {
    const member = this.#world.cluster.members[this.#random.below(this.#size)]
    if (member?.isUp !== true) return
    const options = { needsLeader: this.#random.chance(0.5) }
    member.call(`/etcdserverpb.${path}`, request, options, done)
  }

  #compact(): void {
    const { revision, compactedRevision } = this.#world.cluster
    const at = compactedRevision + this.#random.below(revision - compactedRevision + 1)
    this.#call('KV/Compact', message([1, at]), () => this.#count('compaction'))
  }

  #watch(): void {
    const member = this.#random.below(this.#size)
    if (this.#down.has(member)) return
    const from = Math.max(2, this.#world.cluster.compactedRevision)
    const request = from === 2 ? watchAll : nested(1, message([1, '\0'], [2, '\0'], [3, from]))
    const stream = this.#world.watch(member, request, { needsLeader: this.#random.chance(0.5) })
    this.#following.push({ member, stream, next: from })
  }

  /** Every revision once, in order, as committed. */
  #checkWatches(): void {
    const open: Following[] = []
    for (const following of this.#following) {
      let isOpen = following.stream.end === undefined
      for (const bytes of following.stream.messages.splice(0)) {
        const { events, canceled } = decodeWatchMessage(bytes)
        if (canceled) isOpen = false
        for (const { kv } of events) {
          assert.equal(kv.modRevision, following.next)
          const commit = this.#world.commits[kv.modRevision - 2]
          assert.equal(kv.value.toString(), commit?.changes[0]?.value.toString())
          following.next++
          this.#count('event')
        }
      }
      if (isOpen) open.push(following)
      else this.#count('watch ended')
    }
    this.#following = open
  }

  #fault(): void {
    const random = this.#random
    const { cluster } = this.#world
    const member = random.below(this.#size)
    const kind = random.below(12)
    if (kind < 2) this.#crash(member)
    else if (kind < 5) this.#restart(member)
    else if (kind === 5) {
      if (!this.#down.has(member)) this.#paused.add(member)
      cluster.pause(member)
    } else if (kind < 8) {
      this.#paused.delete(member)
      cluster.resume(member)
    } else if (kind === 8) cluster.moveLeader(member)
    else {
      for (let other = 0; other < this.#size; other++) {
        if (other === member) continue
        this.#world.setLink(member, other, random.chance(0.7))
        this.#world.setLink(other, member, random.chance(0.7))
      }
      cluster.networkChanged()
    }
  }

  #crash(member: number): void {
    this.#world.cluster.crash(member)
    this.#down.add(member)
    this.#paused.delete(member)
    this.#following = this.#following.filter((following) => following.member !== member)
  }

  #restart(member: number): void {
    this.#world.cluster.restart(member)
    this.#down.delete(member)
  }

  #heal(): void {
    const { cluster } = this.#world
    for (const member of this.#down) cluster.restart(member)
    for (const member of this.#paused) cluster.resume(member)
    for (let member = 0; member < this.#size; member++) this.#world.isolate(member, false)
    this.#world.advance(15_000)
    this.#checkWatches()
  }

  /** Once all is well again, every member has everything. */
  #check(): void {
    const { cluster, commits } = this.#world
    assert.notEqual(cluster.leader, undefined)
    commits.forEach(({ revision }, index) => {
      assert.equal(revision, index + 2)
    })
    for (const { next } of this.#following) assert.equal(next, cluster.revision + 1)
    for (let member = 0; member < this.#size; member++) {
      const serializable = message([1, '\0'], [2, '\0'], [7, true])
      const reply = this.#world.call(member, 'KV/Range', serializable)
      assert.ok('message' in reply)
      const { revision, kvs } = decodeRangeResult(reply.message)
      assert.equal(revision, cluster.revision)
      const state = [...cluster.state().values()]
      assert.deepEqual(
        kvs.map(({ key, modRevision }) => `${key} ${modRevision}`),
        state.map(({ key, modRevision }) => `${key} ${modRevision}`),
      )
    }
    const values = new Set(commits.map(({ changes }) => changes[0]?.value.toString()))
    for (const value of this.#acknowledged.keys()) assert.ok(values.has(value), `${value} is lost`)
  }
}
