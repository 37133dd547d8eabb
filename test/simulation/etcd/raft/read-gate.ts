/**
 * Linearizable reads of one member: they wait until the leader has confirmed with a majority that
 * it still leads, and until this member has applied what was committed by then. Reads that come
 * while a confirmation is under way wait for the next one, together.
 */

import type { Status } from '../status.ts'
import * as statuses from '../status.ts'
import type { RaftNode } from './raft.ts'

const retryMs = 500
const timeoutMs = 7_000

type Waiting = (status: Status | undefined) => void

/** Finds the gate of another member. */
export interface ReadGates {
  gateOf(id: number): ReadGate
}

export class ReadGate {
  readonly #raft: RaftNode
  readonly #gates: ReadGates
  #waiting: Waiting[] = []
  /** The reads that the confirmation under way is for. */
  #asking: Waiting[] | undefined
  /** Set when the confirmation has come: the index to be applied. */
  #index: number | undefined
  #round = 0
  #startedAt = 0
  #askedAt = 0
  #hasTimer = false
  /** Requests at this member, as leader, that came before it knew what is committed. */
  #early: (() => void)[] = []

  constructor(raft: RaftNode, gates: ReadGates) {
    this.#raft = raft
    this.#gates = gates
  }

  wait(done: Waiting): void {
    this.#waiting.push(done)
    this.#next()
  }

  /** A leader was found: an answer of the one before is not waited for. */
  leaderChanged(): void {
    this.#early = []
    if (this.#isOpen) this.#end(statuses.leaderChanged)
  }

  /** The first entry of a term is applied: a leader can answer now. */
  firstOfTerm(): void {
    const early = this.#early
    this.#early = []
    for (const serve of early) serve()
    if (this.#isOpen) this.#ask()
  }

  applied(): void {
    if (this.#index !== undefined && this.#raft.applied >= this.#index) this.#end(undefined)
  }

  crash(): void {
    this.#waiting = []
    this.#asking = undefined
    this.#early = []
    this.#index = undefined
    this.#round++
    this.#hasTimer = false
  }

  #next(): void {
    if (this.#asking !== undefined || this.#waiting.length === 0) return
    this.#asking = this.#waiting
    this.#waiting = []
    this.#round++
    this.#startedAt = this.#raft.process.world.now()
    this.#ask()
  }

  #end(status: Status | undefined): void {
    const asking = this.#asking ?? []
    this.#asking = undefined
    this.#index = undefined
    for (const done of asking) done(status)
    this.#next()
  }

  #confirmed(round: number, index: number): void {
    if (round !== this.#round || !this.#isOpen) return
    this.#index = index
    this.applied()
  }

  #ask(): void {
    const round = this.#round
    const { leader } = this.#raft
    if (leader === this.#raft.id) this.#serve((index) => this.#confirmed(round, index))
    else if (leader !== undefined) this.#askLeader(leader, round)
    this.#askedAt = this.#raft.process.world.now()
    if (this.#isOpen && !this.#hasTimer) this.#armTimer(retryMs)
  }

  /** Whether a confirmation is under way that has not come yet. */
  get #isOpen(): boolean {
    return this.#asking !== undefined && this.#index === undefined
  }

  #askLeader(leader: number, round: number): void {
    this.#raft.deliver(leader, (node) => {
      const gate = this.#gates.gateOf(node.id)
      gate.#serve((index) => {
        node.deliver(this.#raft.id, () => this.#confirmed(round, index))
      })
    })
  }

  /** As leader: answers with the commit index of now, once the leadership is confirmed. */
  #serve(answer: (index: number) => void): void {
    const raft = this.#raft
    if (raft.role !== 'leader') return
    if (!raft.hasCommittedInTerm) {
      this.#early.push(() => this.#serve(answer))
      return
    }
    const index = raft.commit
    const { term } = raft
    const ms = raft.confirmationMs()
    if (ms === undefined) return
    if (ms === 0) {
      answer(index)
      return
    }
    raft.process.after(ms, () => {
      if (raft.term === term && raft.confirmationMs() !== undefined) answer(index)
    })
  }

  /**
   * Repeats a request that may have been lost. The timer is not cancelled when the answer comes: it
   * looks at what is under way when it runs, so that frequent reads share it.
   */
  #armTimer(ms: number): void {
    const { process } = this.#raft
    this.#hasTimer = true
    process.after(ms, () => {
      this.#hasTimer = false
      if (!this.#isOpen) return
      const now = process.world.now()
      const sinceAsked = now - this.#askedAt
      if (now - this.#startedAt >= timeoutMs - 1) this.#end(statuses.timedOut)
      else if (sinceAsked < retryMs - 1) this.#armTimer(retryMs - sinceAsked)
      else this.#ask()
    })
  }
}
