/**
 * Raft, as far as clients can tell: elections with pre-votes, replication, commitment by a majority,
 * leases of leadership by heartbeats, transfer of leadership, confirmation of reads.
 *
 * Heartbeats are not simulated one by one. `review` looks at who could hear whom now, after every
 * change of the network and of processes, and starts or stops timers accordingly; in between,
 * nothing is scheduled.
 */
import type { PeerNetwork } from '../contract.ts'
import type { MemberProcess } from '../process.ts'
import { type Entry, RaftLog } from './raft-log.ts'

export const electionMs = 1_000
const heartbeatMs = 100
/** A follower that has not acknowledged so many messages gets no more until it does. */
const inFlightMax = 256

interface Progress {
  match: number
  /** Acknowledged by a message that is on its way. */
  arriving: number
  /** Acknowledged, but without a message: it is taken into account with the next of another. */
  late: number
  next: number
  inFlight: number
  /** Messages were lost: the next one has to find out what the follower has. */
  isLost: boolean
  isProbing: boolean
}

export interface RaftState {
  readonly index: number
  readonly term: number
  readonly revision: number
  readonly compacted: number
}

/** What the member does with what raft decides. */
export interface RaftHost {
  /** A leader is known, or lost (undefined). */
  onLeader(leader: number | undefined, before: number | undefined): void
  apply(entry: Entry): void
  /** The state of another member, which replaces the own one. */
  readonly state: RaftState
  install(state: RaftState): void
}

/** What the members of a cluster share. */
export interface RaftPeers {
  readonly nodes: readonly RaftNode[]
  readonly network: PeerNetwork
  /** Entries up to `index` of this member's log are committed: called in order, by the leader. */
  commit(node: RaftNode, index: number): void
  /** Something happened that may change who follows whom. */
  changed(): void
  note(text: string): void
}

type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader'

export class RaftNode {
  readonly id: number
  readonly process: MemberProcess
  readonly log: RaftLog = new RaftLog()
  term = 0
  commit = 0
  applied = 0
  role: Role = 'follower'
  leader: number | undefined
  /** When this member last became leader. */
  electedAt: number = Number.NEGATIVE_INFINITY
  readonly #peers: RaftPeers
  readonly #host: RaftHost
  #vote: number | undefined
  #votes: Set<number> = new Set()
  #rejections: Set<number> = new Set()
  #progress: Progress[] = []
  /** When the leader was heard last; only meaningful while it is not heard. */
  #silentSince = Number.NEGATIVE_INFINITY
  #cancelElection: (() => void) | undefined
  #cancelStepDown: (() => void) | undefined
  #isStarting = true
  #transferTo: number | undefined
  /** The index of the first entry of its own term, as leader. */
  #ownFrom = 0
  readonly #arrivals: number[] = []
  #isApplying = false

  constructor(options: {
    readonly id: number
    readonly process: MemberProcess
    readonly peers: RaftPeers
    readonly host: RaftHost
  }) {
    this.id = options.id
    this.process = options.process
    this.#peers = options.peers
    this.#host = options.host
  }

  get size(): number {
    return this.#peers.nodes.length
  }

  get quorum(): number {
    return (this.size >>> 1) + 1
  }

  get isTransferring(): boolean {
    return this.#transferTo !== undefined
  }

  /** Whether the leader has committed an entry of its term: before that it does not know enough. */
  get hasCommittedInTerm(): boolean {
    return this.role === 'leader' && this.commit >= this.#ownFrom
  }

  // ---- the process

  crash(): void {
    this.#stopTimers()
    this.role = 'follower'
    this.leader = undefined
    this.#progress = []
    this.#transferTo = undefined
    this.#isApplying = false
  }

  start(): void {
    this.#isStarting = true
    this.#silentSince = Number.NEGATIVE_INFINITY
  }

  /** Ticks do not accumulate while a process is stopped. */
  resume(): void {
    this.#stopTimers()
    if (this.leader !== undefined) this.#silentSince = this.#now()
    for (const progress of this.#progress) progress.isLost = true
  }

  /** Begins as a member of a restored or new cluster. */
  begin(term: number, index: number): void {
    this.term = term
    this.log.reset(index, term)
    this.commit = index
    this.applied = index
    this.#vote = undefined
  }

  // ---- who hears whom

  /** Whether messages between the two arrive and are handled, in both directions. */
  isLinked(peer: RaftNode): boolean {
    const { network } = this.#peers
    return (
      peer.process.isRunning &&
      network.isReachable(this.id, peer.id) &&
      network.isReachable(peer.id, this.id)
    )
  }

  /** Starts and stops timers after something has changed. */
  review(): void {
    if (!this.process.isRunning) return
    if (this.role === 'leader') this.#reviewLeadership()
    else this.#reviewLeader()
  }

  #reviewLeadership(): void {
    this.#cancelElection?.()
    this.#cancelElection = undefined
    let active = 1
    for (const peer of this.#others()) {
      if (this.isLinked(peer)) active++
      this.#reviewFollower(peer)
    }
    // The messages that were on their way may be lost.
    for (const progress of this.#progress) progress.arriving = 0
    this.#foldLate()
    this.#advance()
    if (active >= this.quorum) {
      this.#cancelStepDown?.()
      this.#cancelStepDown = undefined
      return
    }
    this.#cancelStepDown ??= this.process.timer(electionMs * (1 + this.#random()), () => {
      this.#cancelStepDown = undefined
      this.#peers.note(`member ${this.id} steps down: no quorum`)
      this.#follow(this.term, undefined)
    })
  }

  /** A heartbeat would tell the follower what it does not know. */
  #reviewFollower(peer: RaftNode): void {
    const progress = this.#progress[peer.id]
    if (progress === undefined) return
    const reaches = peer.process.isRunning && this.#peers.network.isReachable(this.id, peer.id)
    if (!reaches || !this.isLinked(peer)) {
      progress.isLost = true
      progress.inFlight = 0
    }
    const isNews = progress.isLost || peer.leader !== this.id || peer.term !== this.term
    if (!reaches || !isNews || progress.isProbing) return
    progress.isProbing = true
    this.process.after(this.#random() * heartbeatMs, () => {
      progress.isProbing = false
      if (this.role === 'leader' && this.#progress[peer.id] === progress)
        this.#probe(peer, progress)
    })
  }

  #reviewLeader(): void {
    this.#cancelStepDown?.()
    this.#cancelStepDown = undefined
    if (this.#hearsLeader()) {
      this.#cancelElection?.()
      this.#cancelElection = undefined
      return
    }
    if (this.#cancelElection === undefined) {
      this.#silentSince = this.#now()
      this.#armElection()
    }
  }

  #hearsLeader(): boolean {
    if (this.leader === undefined) return false
    const leader = this.#peers.nodes[this.leader]
    return (
      leader?.process.isRunning === true &&
      leader.role === 'leader' &&
      leader.term === this.term &&
      this.#peers.network.isReachable(leader.id, this.id)
    )
  }

  /** While it has a leader, a member takes no part in the election of another. */
  #isInLease(): boolean {
    if (this.leader === undefined) return false
    if (this.role === 'leader' || this.#hearsLeader()) return true
    return this.#now() - this.#silentSince < electionMs
  }

  // ---- elections

  #armElection(): void {
    this.#cancelElection?.()
    // A member that starts uses most of its first timeout up at once.
    const ms = this.#isStarting ? electionMs * (0.1 + 0.9 * this.#random()) : this.#timeout()
    this.#isStarting = false
    this.#cancelElection = this.process.timer(ms, () => {
      this.#cancelElection = undefined
      this.#campaign('pre-candidate')
    })
  }

  #timeout(): number {
    return electionMs * (1 + this.#random())
  }

  #campaign(role: 'pre-candidate' | 'candidate', isForced: boolean = false): void {
    this.role = role
    this.#setLeader(undefined)
    if (role === 'candidate') {
      this.term++
      this.#vote = this.id
    }
    this.#votes = new Set([this.id])
    this.#rejections = new Set()
    this.#armElection()
    if (this.#votes.size >= this.quorum) {
      this.#won()
      return
    }
    const term = role === 'candidate' ? this.term : this.term + 1
    const { last, lastTerm } = this.log
    const candidate = { from: this.id, term, last, lastTerm, isForced }
    for (const peer of this.#others()) {
      this.#send(peer, () => {
        if (role === 'candidate') peer.#onVote(candidate)
        else peer.#onPreVote(candidate)
      })
    }
  }

  #onPreVote(candidate: Candidate): void {
    if (this.#isInLease()) return
    const isGranted = candidate.term > this.term && this.#isUpToDate(candidate)
    this.#answer(candidate, 'pre-candidate', isGranted)
  }

  #onVote(candidate: Candidate): void {
    if (!candidate.isForced && this.#isInLease()) return
    if (candidate.term > this.term) this.#follow(candidate.term, undefined)
    const isFree = this.#vote === undefined || this.#vote === candidate.from
    const isGranted = candidate.term === this.term && isFree && this.#isUpToDate(candidate)
    if (isGranted) {
      this.#vote = candidate.from
      this.#armElection()
    }
    this.#answer(candidate, 'candidate', isGranted)
  }

  #isUpToDate({ last, lastTerm }: Candidate): boolean {
    if (lastTerm !== this.log.lastTerm) return lastTerm > this.log.lastTerm
    return last >= this.log.last
  }

  #answer(candidate: Candidate, role: Role, isGranted: boolean): void {
    const peer = this.#peers.nodes[candidate.from] as RaftNode
    const { term } = this
    this.#send(peer, () =>
      peer.#onAnswer(this.id, { role, isGranted, term, asked: candidate.term }),
    )
  }

  #onAnswer(
    from: number,
    answer: {
      readonly role: Role
      readonly isGranted: boolean
      readonly term: number
      readonly asked: number
    },
  ): void {
    if (!answer.isGranted && answer.term > this.term) {
      this.#follow(answer.term, undefined)
      return
    }
    const asked = answer.role === 'candidate' ? this.term : this.term + 1
    if (this.role !== answer.role || answer.asked !== asked) return
    if (answer.isGranted) this.#votes.add(from)
    else this.#rejections.add(from)
    if (this.#votes.size >= this.quorum) this.#won()
    else if (this.#rejections.size >= this.quorum) this.#follow(this.term, undefined)
  }

  #won(): void {
    if (this.role === 'pre-candidate') {
      this.#campaign('candidate')
      return
    }
    this.role = 'leader'
    this.electedAt = this.#now()
    this.#transferTo = undefined
    this.#cancelElection?.()
    this.#cancelElection = undefined
    const next = this.log.last + 1
    this.#progress = this.#peers.nodes.map(() => ({
      match: 0,
      arriving: 0,
      late: 0,
      next,
      inFlight: 0,
      isLost: false,
      isProbing: false,
    }))
    this.#ownFrom = next
    this.#peers.note(`member ${this.id} is leader of term ${this.term}`)
    this.#setLeader(this.id)
    this.append({ command: { kind: 'empty' }, cost: 0, origin: -1, proposal: 0 })
    this.#peers.changed()
  }

  /** Becomes a follower. */
  #follow(term: number, leader: number | undefined): void {
    const hasChanged = this.role !== 'follower' || this.term !== term || this.leader !== leader
    this.role = 'follower'
    this.#transferTo = undefined
    if (term > this.term) {
      this.term = term
      this.#vote = undefined
    }
    this.#setLeader(leader)
    if (hasChanged) this.#peers.changed()
  }

  #setLeader(leader: number | undefined): void {
    const before = this.leader
    if (before === leader) return
    this.leader = leader
    this.#host.onLeader(leader, before)
  }

  /** Asks another member to take over: once it has the whole log. */
  transfer(to: number): void {
    if (this.role !== 'leader' || to === this.id) return
    this.#transferTo = to
    this.#foldLate()
    this.process.after(electionMs, () => {
      if (this.#transferTo === to) this.#transferTo = undefined
    })
    this.#continueTransfer()
  }

  #continueTransfer(): void {
    const to = this.#transferTo
    if (to === undefined) return
    const peer = this.#peers.nodes[to]
    if (peer === undefined || this.#progress[to]?.match !== this.log.last) return
    const { term } = this
    this.#send(peer, () => {
      if (peer.term === term) peer.#campaign('candidate', true)
    })
  }

  // ---- replication

  /** As leader: appends an entry and replicates it. */
  append(content: Pick<Entry, 'command' | 'cost' | 'origin' | 'proposal'>): void {
    this.log.append({ term: this.term, outcome: undefined, ...content })
    for (const peer of this.#others()) this.#sendAppend(peer, false)
    this.#advance()
  }

  /** `isForced`: even without entries, to pass the commit index on. */
  #sendAppend(peer: RaftNode, isForced: boolean): void {
    const progress = this.#progress[peer.id]
    if (progress === undefined || progress.isLost || progress.inFlight >= inFlightMax) return
    if (!isForced && progress.next > this.log.last) return
    if (!peer.process.isRunning) {
      progress.isLost = true
      return
    }
    const previous = progress.next - 1
    const previousTerm = this.log.termAt(previous)
    if (previousTerm === undefined) {
      this.#sendState(peer, progress)
      return
    }
    const entries = this.log.last > previous ? this.log.from(previous + 1) : noEntries
    progress.next = this.log.last + 1
    if (entries.length > 0) progress.inFlight++
    const message: Append = {
      from: this.id,
      term: this.term,
      previous,
      previousTerm,
      entries,
      commit: this.commit,
      isProbe: false,
    }
    const isSent = this.#send(peer, () => peer.#onAppend(message))
    if (!isSent) progress.isLost = true
  }

  #probe(peer: RaftNode, progress: Progress): void {
    this.#foldLate()
    const previous = progress.match
    const previousTerm = this.log.termAt(previous)
    progress.isLost = false
    progress.inFlight = 0
    if (previousTerm === undefined) {
      this.#sendState(peer, progress)
      return
    }
    progress.next = this.log.last + 1
    const message: Append = {
      from: this.id,
      term: this.term,
      previous,
      previousTerm,
      entries: this.log.last > previous ? this.log.from(previous + 1) : noEntries,
      commit: this.commit,
      isProbe: true,
    }
    if (!this.#send(peer, () => peer.#onAppend(message))) progress.isLost = true
  }

  /** The follower needs entries that are dropped: it gets the whole state. */
  #sendState(peer: RaftNode, progress: Progress): void {
    const { state } = this.#host
    const { term } = this
    progress.next = state.index + 1
    progress.match = 0
    const isSent = this.#send(peer, () => {
      if (peer.term > term) {
        peer.#acknowledge(this.id, 0, false)
        return
      }
      peer.#follow(term, this.id)
      if (peer.commit < state.index) peer.install(state)
      peer.#acknowledge(this.id, state.index, true)
    })
    if (!isSent) progress.isLost = true
  }

  install(state: RaftState): void {
    // Entries after it that are in the log were acknowledged: they must stay.
    if (this.log.termAt(state.index) !== state.term) this.log.reset(state.index, state.term)
    this.commit = state.index
    this.applied = state.index
    this.#host.install(state)
  }

  #onAppend(message: Append): void {
    const { term, from } = message
    if (term < this.term) {
      // Tells a former leader that its term is over.
      this.#acknowledge(from, 0, false)
      return
    }
    if (term > this.term || this.role !== 'follower' || this.leader !== from) {
      this.#follow(term, from)
    }
    const { previous, entries } = message
    const own = this.log.termAt(previous)
    // What is committed is the same everywhere, even when it is dropped here.
    if (previous >= this.commit && own !== message.previousTerm) {
      this.#acknowledge(from, Math.min(this.commit, previous), false)
      return
    }
    this.log.merge(previous + 1, entries)
    const match = previous + entries.length
    if (entries.length > 0 || message.isProbe) this.#acknowledge(from, match, true)
    this.#commitTo(Math.min(message.commit, match))
  }

  /** `match`: the log is the leader's up to there. When not accepted: where to continue. */
  #acknowledge(to: number, match: number, isAccepted: boolean): void {
    const leader = this.#peers.nodes[to] as RaftNode
    const { term } = this
    const isItsLeader = leader.role === 'leader' && leader.term === term
    if (isAccepted && isItsLeader && leader.process.isRunning && leader.isLinked(this)) {
      if (leader.#takesLate(this.id, match)) return
    }
    this.#send(leader, () => leader.#onAcknowledge(this, { match, term, isAccepted }))
  }

  /**
   * Spares the message of an acknowledgement on which nothing depends: a majority has the entry
   * even without it, or will as soon as the messages arrive that are on their way.
   */
  #takesLate(from: number, match: number): boolean {
    const own = this.#progress[from]
    if (own === undefined || this.#transferTo !== undefined) return false
    // After a whole state, the acknowledgement makes the leader send what comes after it.
    if (own.next <= this.log.last) return false
    let others = 1
    for (const peer of this.#others()) {
      const progress = this.#progress[peer.id] as Progress
      if (peer.id !== from && Math.max(progress.match, progress.arriving) >= match) others++
    }
    if (this.commit < match && others < this.quorum) {
      own.arriving = Math.max(own.arriving, match)
      return false
    }
    own.late = Math.max(own.late, match)
    if (own.inFlight > 0) own.inFlight--
    return true
  }

  #foldLate(): void {
    for (const progress of this.#progress) {
      if (progress.late <= progress.match) continue
      progress.match = progress.late
      progress.next = Math.max(progress.next, progress.match + 1)
    }
  }

  #onAcknowledge(
    peer: RaftNode,
    answer: { readonly match: number; readonly term: number; readonly isAccepted: boolean },
  ): void {
    if (answer.term > this.term) {
      this.#follow(answer.term, undefined)
      return
    }
    const progress = this.#progress[peer.id]
    if (this.role !== 'leader' || answer.term < this.term || progress === undefined) return
    this.#foldLate()
    if (progress.inFlight > 0) progress.inFlight--
    if (!answer.isAccepted) {
      progress.match = Math.max(progress.match, answer.match)
      this.#probe(peer, progress)
      return
    }
    progress.match = Math.max(progress.match, answer.match)
    progress.next = Math.max(progress.next, progress.match + 1)
    this.#sendAppend(peer, false)
    this.#advance()
    this.#continueTransfer()
  }

  /** Commits what a majority has, if it is of the own term. */
  #advance(): void {
    const index = this.#majorityMatch()
    if (index <= this.commit || this.log.termAt(index) !== this.term) return
    this.#peers.commit(this, index)
    this.#commitTo(index)
    for (const peer of this.#others()) this.#sendAppend(peer, true)
  }

  /** The newest index that a majority has. */
  #majorityMatch(): number {
    let best = this.commit
    const { quorum, log } = this
    for (let id = 0; id < this.#progress.length; id++) {
      const index = id === this.id ? log.last : (this.#progress[id] as Progress).match
      if (index <= best) continue
      let count = log.last >= index ? 1 : 0
      for (let other = 0; other < this.#progress.length; other++) {
        if (other !== this.id && (this.#progress[other] as Progress).match >= index) count++
      }
      if (count >= quorum) best = index
    }
    return best
  }

  #commitTo(index: number): void {
    if (index <= this.commit) return
    this.commit = index
    if (this.#isApplying) return
    this.#isApplying = true
    while (this.applied < this.commit) {
      const entry = this.log.at(this.applied + 1)
      if (entry === undefined) break
      this.applied++
      this.#host.apply(entry)
    }
    this.#isApplying = false
  }

  // ---- reads

  /**
   * As leader: how long it takes now to confirm with a majority that it still is the leader, in
   * milliseconds. Undefined: the confirmation would not come.
   */
  confirmationMs(): number | undefined {
    if (this.role !== 'leader') return undefined
    if (this.quorum === 1) return 0
    const { network } = this.#peers
    const trips: number[] = []
    for (const peer of this.#others()) {
      if (!this.isLinked(peer) || peer.term > this.term) continue
      trips.push(network.delayMs(this.id, peer.id) + network.delayMs(peer.id, this.id))
    }
    trips.sort((a, b) => a - b)
    return trips[this.quorum - 2]
  }

  // ---- messages

  /** Sends to another member, in order. False when it cannot arrive. */
  #send(peer: RaftNode, deliver: () => void): boolean {
    const { network } = this.#peers
    if (!peer.process.isUp || !network.isReachable(this.id, peer.id)) return false
    const now = this.#now()
    const earliest = this.#arrivals[peer.id] ?? 0
    const at = Math.max(earliest, now + network.delayMs(this.id, peer.id))
    this.#arrivals[peer.id] = at
    peer.process.after(at - now, () => {
      if (network.isReachable(this.id, peer.id)) deliver()
    })
    return true
  }

  /** Sends something other than raft's own messages. */
  deliver(to: number, deliver: (peer: RaftNode) => void): void {
    const peer = this.#peers.nodes[to]
    if (peer !== undefined) this.#send(peer, () => deliver(peer))
  }

  #others(): readonly RaftNode[] {
    this.#otherNodes ??= this.#peers.nodes.filter((node) => node !== this)
    return this.#otherNodes
  }

  #otherNodes: readonly RaftNode[] | undefined

  #stopTimers(): void {
    this.#cancelElection?.()
    this.#cancelElection = undefined
    this.#cancelStepDown?.()
    this.#cancelStepDown = undefined
  }

  #now(): number {
    return this.process.world.now()
  }

  #random(): number {
    return this.process.world.random()
  }
}

interface Candidate {
  readonly from: number
  readonly term: number
  readonly last: number
  readonly lastTerm: number
  readonly isForced: boolean
}

interface Append {
  readonly from: number
  readonly term: number
  readonly previous: number
  readonly previousTerm: number
  readonly entries: readonly Entry[]
  readonly commit: number
  /** Always acknowledged. */
  readonly isProbe: boolean
}

const noEntries: readonly Entry[] = []
