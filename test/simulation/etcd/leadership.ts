/**
 * Who leads the members, who knows it, and when a write is committed.
 *
 * This is not Raft, but what clients can observe of it. There is one history, to which only the
 * leader appends, after a round trip to a majority. A member that hears nothing from the leader loses
 * it after an election timeout and takes over if it reaches a majority that has no leader either. Of
 * the writes that were on their way then, a random prefix is committed by the new leader, and the
 * rest is lost. A deposed leader believes that it leads until it hears of its successor, or has been
 * without a majority for an election timeout.
 *
 * `review` looks at who can hear whom after every change of the network and of processes, and
 * starts or stops timers accordingly; in between, nothing is scheduled.
 */
import type { PeerNetwork } from './contract.ts'
import type { Command } from './machine.ts'
import type { MemberProcess } from './process.ts'

export const electionMs = 1_000
const heartbeatMs = 100

/** A command on its way into the history. */
export interface Proposal {
  readonly command: Command
  /** The bytes that the space quota charges. */
  readonly cost: number
  /** The member that waits for the outcome, and its number for it. */
  readonly origin: number
  readonly number: number
}

interface InFlight extends Proposal {
  /** Whether a follower may have it, so that it can survive its leader. */
  isShared: boolean
}

/** A member as far as leadership is concerned. */
export interface Participant {
  readonly process: MemberProcess
  /** How many entries of the history it has applied. */
  readonly applied: number
  applyTo(index: number): void
  /** A leader is known, or lost (undefined). */
  onLeader(leader: number | undefined, before: number | undefined): void
}

export interface LeadershipOptions {
  readonly members: readonly Participant[]
  readonly network: PeerNetwork
  /** Appends to the history, and returns its new length. */
  readonly commit: (proposal: Proposal) => number
  readonly note: (text: string) => void
}

export class Leadership {
  /** The leader of the newest term, even if it has no majority; undefined once it knows that. */
  leader: number | undefined
  term = 1
  /** When the leader was elected. */
  electedAt: number = Number.NEGATIVE_INFINITY
  readonly #options: LeadershipOptions
  /** The leader that each member knows. */
  readonly #known: (number | undefined)[]
  /** Members that hear nothing from a leader, with the timer of their election timeout. */
  readonly #silent = new Map<number, () => void>()
  /** Members that the leader is about to bring up to date. */
  readonly #greeted = new Set<number>()
  /** Members whose first election timeout is shorter, since they have just started. */
  readonly #starting = new Set<number>()
  #inFlight: InFlight[] = []
  #committed = 0
  /** Whether the leader has committed an entry of its term: before that it cannot confirm reads. */
  #isEstablished = false
  #isTransferring = false
  #isReviewing = false
  #isReviewDue = false

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#known = options.members.map(() => undefined)
  }

  knownTo(member: number): number | undefined {
    return this.#known[member]
  }

  /** All members begin with a history of this length. */
  begin(index: number): void {
    this.#committed = index
    this.#inFlight = []
    for (const member of this.#known.keys()) this.#starting.add(member)
    this.review()
  }

  crashed(member: number): void {
    this.#silent.get(member)?.()
    this.#silent.delete(member)
    this.#greeted.delete(member)
    this.#starting.add(member)
    this.#known[member] = undefined
    if (this.leader === member) this.leader = undefined
    this.review()
  }

  // ---- who hears whom

  /** Starts and stops timers after something has changed. */
  review(): void {
    this.#isReviewDue = true
    if (this.#isReviewing) return
    this.#isReviewing = true
    while (this.#isReviewDue) {
      this.#isReviewDue = false
      for (const member of this.#known.keys()) this.#reviewMember(member)
      if (this.#inFlight.length > 0) this.#replicate()
    }
    this.#isReviewing = false
  }

  #reviewMember(member: number): void {
    const { leader } = this
    if (this.#process(member).isRunning && !this.#hears(member)) this.#waitForLeader(member)
    else {
      this.#silent.get(member)?.()
      this.#silent.delete(member)
    }
    if (leader === undefined || member === leader) return
    const isBehind = this.#member(member).applied < this.#committed
    if (this.#known[member] === leader && !isBehind) return
    if (this.#reaches(leader, member)) this.#greet(member, this.#random(leader) * heartbeatMs)
  }

  /** A follower hears its leader; a leader hears a majority. */
  #hears(member: number): boolean {
    const { leader } = this
    if (leader === undefined || this.#known[member] !== leader) return false
    return member === leader ? this.#hasMajority(leader) : this.#reaches(leader, member)
  }

  #waitForLeader(member: number): void {
    if (this.#silent.has(member)) return
    const isStarting = this.#starting.delete(member)
    // A member that starts has used up most of its first timeout.
    const timeouts = isStarting ? 0.1 + 0.9 * this.#random(member) : 1 + this.#random(member)
    const cancel = this.#process(member).timer(timeouts * electionMs, () => {
      this.#silent.delete(member)
      this.#timedOut(member)
    })
    this.#silent.set(member, cancel)
  }

  #timedOut(member: number): void {
    if (this.leader === member) {
      this.leader = undefined
      this.#options.note(`member ${member} steps down: no majority`)
    }
    this.#setKnown(member, undefined)
    const hasVote = (other: number) => !this.#hears(other) && this.#isLinked(member, other)
    if (this.#others(member).filter(hasVote).length + 1 >= this.#majority) this.#elect(member)
    else this.review()
  }

  #setKnown(member: number, leader: number | undefined): void {
    const before = this.#known[member]
    if (before === leader) return
    this.#known[member] = leader
    this.#member(member).onLeader(leader, before)
  }

  /** The leader announces itself to a member, and brings it up to date if it can. */
  #greet(member: number, ms: number): void {
    if (this.#greeted.has(member)) return
    this.#greeted.add(member)
    const { leader, term } = this
    this.#process(member).after(ms + this.#delayMs(leader as number, member), () => {
      this.#greeted.delete(member)
      if (this.leader === leader && this.term === term && this.#reaches(leader as number, member)) {
        this.#setKnown(member, leader)
        if (this.#isLinked(leader as number, member)) this.#member(member).applyTo(this.#committed)
      }
      this.review()
    })
  }

  // ---- elections

  #elect(member: number): void {
    const shared = this.#inFlight.findIndex(({ isShared }) => !isShared)
    const most = shared < 0 ? this.#inFlight.length : shared
    this.#lead(member, Math.floor(this.#random(member) * (most + 1)))
  }

  /** `survivors`: how many of the proposals in flight the new leader has. */
  #lead(member: number, survivors: number): void {
    this.term++
    this.leader = member
    this.electedAt = this.#process(member).world.now()
    this.#isTransferring = false
    this.#isEstablished = false
    this.#options.note(`member ${member} is leader of term ${this.term}`)
    this.#inFlight.length = survivors
    const elected = { command: { kind: 'elected' }, cost: 0, origin: -1, number: 0 } as const
    this.#inFlight.push({ ...elected, isShared: false })
    this.#setKnown(member, member)
    this.#greeted.clear()
    for (const other of this.#others(member)) {
      if (!this.#isLinked(member, other)) continue
      // It voted: it knows that the former leader is gone.
      this.#setKnown(other, undefined)
      this.#greet(other, 0)
    }
    this.review()
  }

  /** Another member takes over; meanwhile the leader accepts no writes. */
  transfer(to: number): void {
    const { leader, term } = this
    if (leader === undefined || to === leader) return
    this.#isTransferring = true
    this.#process(leader).after(electionMs, () => {
      if (this.term === term) this.#isTransferring = false
    })
    if (!this.#isLinked(leader, to)) return
    const ms = this.#delayMs(leader, to) + this.#delayMs(to, leader)
    this.#process(to).after(ms, () => {
      const isPossible = this.term === term && this.leader === leader && this.#hasMajority(to)
      if (isPossible) this.#lead(to, this.#inFlight.length)
    })
  }

  // ---- the history

  /** False when the member itself is the leader and accepts no writes. Otherwise it may be lost. */
  propose(member: number, proposal: Proposal): boolean {
    const leader = this.#known[member]
    if (leader === undefined) return true
    if (leader === member && this.#isTransferring) return false
    this.send(member, leader, () => {
      if (this.leader !== leader || this.#isTransferring) return
      this.#inFlight.push({ ...proposal, isShared: false })
      this.#replicate()
    })
    return true
  }

  /** Commits the proposals in flight after a round trip to a majority. */
  #replicate(): void {
    const { leader, term } = this
    if (leader === undefined || !this.#process(leader).isRunning) return
    if (this.#others(leader).some((other) => this.#reaches(leader, other))) {
      for (const proposal of this.#inFlight) proposal.isShared = true
    }
    const last = this.#inFlight.at(-1)
    const ms = this.#roundTripMs(leader)
    if (last === undefined || ms === undefined) return
    const commit = () => {
      if (this.leader !== leader || this.term !== term || !this.#hasMajority(leader)) return
      while (this.#inFlight.includes(last)) this.#commit(leader, this.#inFlight.shift() as InFlight)
    }
    if (ms === 0) commit()
    else this.#process(leader).after(ms, commit)
  }

  #commit(leader: number, proposal: InFlight): void {
    const index = this.#options.commit(proposal)
    this.#committed = index
    if (proposal.command.kind === 'elected') this.#isEstablished = true
    this.#member(leader).applyTo(index)
    for (const member of this.#others(leader)) {
      if (!this.#isLinked(leader, member)) continue
      this.#process(member).after(this.#delayMs(leader, member), () => {
        if (this.#reaches(leader, member)) this.#member(member).applyTo(index)
      })
    }
  }

  /**
   * Asks the leader how long the history is, which it answers once a majority has confirmed that it
   * still leads. The question and the answer may be lost.
   */
  confirm(member: number, done: (index: number) => void): void {
    const leader = this.#known[member]
    if (leader === undefined) return
    this.send(member, leader, () => {
      if (this.leader !== leader || !this.#isEstablished) return
      const { term } = this
      const index = this.#committed
      const ms = this.#roundTripMs(leader)
      if (ms === undefined) return
      const answer = () => {
        const isLeader = this.leader === leader && this.term === term && this.#hasMajority(leader)
        if (isLeader) this.send(leader, member, () => done(index))
      }
      if (ms === 0) answer()
      else this.#process(leader).after(ms, answer)
    })
  }

  // ---- messages

  /** Runs `deliver` at the other member when the message arrives, if it does. */
  send(from: number, to: number, deliver: () => void): void {
    if (from === to) {
      deliver()
      return
    }
    if (!this.#options.network.isReachable(from, to)) return
    this.#process(to).after(this.#delayMs(from, to), () => {
      if (this.#options.network.isReachable(from, to)) deliver()
    })
  }

  /** Whether messages arrive and are handled. */
  #reaches(from: number, to: number): boolean {
    const areRunning = this.#process(from).isRunning && this.#process(to).isRunning
    return areRunning && this.#options.network.isReachable(from, to)
  }

  #isLinked(one: number, other: number): boolean {
    return this.#reaches(one, other) && this.#reaches(other, one)
  }

  get #majority(): number {
    return (this.#known.length >>> 1) + 1
  }

  #hasMajority(member: number): boolean {
    return this.#roundTripMs(member) !== undefined
  }

  /** The time to hear from the fastest majority; undefined when there is none. */
  #roundTripMs(member: number): number | undefined {
    if (!this.#process(member).isRunning) return undefined
    if (this.#majority === 1) return 0
    const linked = this.#others(member).filter((other) => this.#isLinked(member, other))
    const trips = linked.map((other) => this.#delayMs(member, other) + this.#delayMs(other, member))
    return trips.sort((a, b) => a - b)[this.#majority - 2]
  }

  #others(member: number): readonly number[] {
    return [...this.#known.keys()].filter((other) => other !== member)
  }

  #member(member: number): Participant {
    return this.#options.members[member] as Participant
  }

  #process(member: number): MemberProcess {
    return this.#member(member).process
  }

  #delayMs(from: number, to: number): number {
    return this.#options.network.delayMs(from, to)
  }

  #random(member: number): number {
    return this.#process(member).world.random()
  }
}
