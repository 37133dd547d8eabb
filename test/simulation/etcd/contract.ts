/** What the simulated etcd needs from the world, and what the world gets from it. */

/** The world as one member sees it. The member drops what it had scheduled when it crashes. */
export interface MemberWorld {
  /** True time in milliseconds, with fractions. A member measures leases by it. */
  now(): number
  /** Runs later, in the order of time, then of the calls. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
  /** Uniform in [0, 1), from the seed of the run. */
  random(): number
}

/** The network between members, and their clocks. Changes while the world runs. */
export interface PeerNetwork {
  /** Whether messages from one member reach the other now. Not necessarily symmetric. */
  isReachable(from: number, to: number): boolean
  /** The delay of the next message between two members, in milliseconds. */
  delayMs(from: number, to: number): number
}

/** The end of a call: a gRPC status. OK (0) has a message; other codes have details. */
export type CallReply =
  | { readonly code: 0; readonly message: Buffer }
  | { readonly code: number; readonly details: string }

/** The sending side of a stream: the connection to the client. */
export interface StreamOut {
  /**
   * False when the client reads too slowly and the stream's buffer is full: nothing more may be
   * sent until `onDrain`. The message itself was accepted.
   */
  send(message: Buffer): boolean
  /** Ends the stream with a gRPC status. */
  end(code: number, details: string): void
}

/** A stream as the member sees it. */
export interface StreamIn {
  /** A request from the client. */
  receive(message: Buffer): void
  /** The client has read: the buffer of the stream has space again. */
  onDrain(): void
  /** The client cancelled the stream, or its connection broke. */
  close(): void
}

/** One member, as its clients reach it. Requests and replies are etcd's protobuf messages. */
export interface Member {
  readonly isUp: boolean
  /**
   * Handles one unary call. `reply` is called at most once, maybe at once; never if the member
   * crashes first. A member without quorum replies as etcd does, after etcd's own timeouts.
   * `LeaseKeepAlive`, a stream in gRPC, is a call here: one request, one reply.
   */
  call(
    path: string,
    message: Buffer,
    options: { readonly needsLeader: boolean },
    reply: (reply: CallReply) => void,
  ): void
  /** Opens a Watch stream. With `needsLeader` it ends when the member has lost its leader. */
  openWatch(out: StreamOut, options: { readonly needsLeader: boolean }): StreamIn
  /** Opens a RangeStream, whose one request follows. A member may not have that method. */
  openRangeStream(out: StreamOut, options: { readonly needsLeader: boolean }): StreamIn
}

export interface Change {
  readonly type: 'put' | 'delete'
  readonly key: Buffer
  /** Empty for a delete. */
  readonly value: Buffer
  readonly version: number
  readonly createRevision: number
  readonly lease: bigint
}

/** One revision of the store, as committed. The truth that invariants compare with. */
export interface Commit {
  readonly revision: number
  /** The true time at which a majority had it: from then on linearizable reads see it. */
  readonly at: number
  /** Ordered by sub-revision. */
  readonly changes: readonly Change[]
  /** The transaction that made them; undefined when a lease expired. */
  readonly command?: CommittedTxn | undefined
}

/** A transaction, as far as checks look at it. Keys are latin1 strings, which sort like their bytes. */
export interface CommittedTxn {
  readonly kind: 'txn'
  /** `number`: the operand, if it is one. */
  readonly compares: readonly {
    readonly key: string
    readonly target: number
    readonly number: number
  }[]
  /** The puts and nested transactions of the branch that requires the compares. */
  readonly success: readonly (CommittedTxn | { readonly kind: 'put'; readonly key: string })[]
}

export interface ClusterObserver {
  onCommit?(commit: Commit): void
  /** History up to and including `revision` is gone (the state at that revision stays). */
  onCompact?(revision: number, at: number): void
  /** The cluster was restored: commits after `kept` are gone; the next one is after `revision`. */
  onRestore?(restore: {
    readonly kept: number
    readonly revision: number
    readonly at: number
  }): void
  /** A line for the trace. */
  onEvent?(text: string): void
}

/** The minor versions of etcd whose clients observe different things. */
export type Release = (typeof releases)[number]
export const releases = ['3.5', '3.6', '3.7'] as const

/** The release of a version such as 3.6.14; a later one than all of them is taken for the last. */
export function releaseOf(version: string): Release {
  return releases.find((release) => version.startsWith(`${release}.`)) ?? '3.7'
}

export interface ClusterOptions {
  readonly size: number
  /** Default: 3.5. */
  readonly release?: Release | undefined
  readonly world: (member: number) => MemberWorld
  readonly network: PeerNetwork
  readonly observer: ClusterObserver
  /** Space quota in bytes; 0: none. */
  readonly quotaBytes: number
  /** How likely a member has RangeStream (etcd 3.7) after each start; default: none has it. */
  readonly rangeStreamShare?: number | undefined
  /** A watch response of this size is sent in fragments; default: etcd's 2 MiB. */
  readonly watchFragmentBytes?: number | undefined
  /**
   * Asked for each watch of the past: whether its first changes lack their previous values; default: of
   * none. etcd registers a watch before the option that asks for them, so a busy member may send
   * changes in between.
   */
  readonly watchLacksPrevious?: (() => boolean) | undefined
}

/** An opaque copy of everything that `etcdutl snapshot save` would write. */
export interface Snapshot {
  readonly revision: number
}

/** A cluster of simulated members. */
export interface Cluster {
  readonly members: readonly Member[]
  /** The newest committed revision. */
  readonly revision: number
  readonly compactedRevision: number
  readonly leader: number | undefined
  /** The process ends at once; its log on disk survives. */
  crash(member: number): void
  restart(member: number): void
  /** The process stops and continues (SIGSTOP, SIGCONT): its timers and messages wait. */
  pause(member: number): void
  resume(member: number): void
  /** Peer reachability has changed: call after every change of `network`. */
  networkChanged(): void
  /** Makes another member the leader, as `etcdctl move-leader` does. */
  moveLeader(to: number): void
  snapshot(): Snapshot
  /**
   * Replaces all members by new ones that start from the snapshot, as after `etcdutl snapshot
   * restore`; with `bump`, revisions continue that far after the snapshot's, and everything before
   * is marked compacted (`--bump-revision`, `--mark-compacted`).
   */
  restore(snapshot: Snapshot, options: { readonly bump: number }): void
  setQuota(bytes: number): void
  /** Removes the NOSPACE alarm, as `etcdctl alarm disarm` does, after an operator freed space. */
  disarm(): void
  /** An operator's `etcdctl defrag` of one member. */
  defragment(member: number): void
  /** The current state, for the comparison at the end: by key, in key order. */
  state(): ReadonlyMap<string, Change & { readonly modRevision: number }>
}
