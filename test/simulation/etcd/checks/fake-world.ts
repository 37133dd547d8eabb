/** A small virtual world for one cluster: time, a network whose links can be cut, and clients. */
import { Random } from '../../../support/random.ts'
import { Scheduler } from '../../kernel/scheduler.ts'
import { createCluster } from '../cluster.ts'
import type {
  CallReply,
  Cluster,
  ClusterOptions,
  Commit,
  MemberWorld,
  Release,
  StreamIn,
} from '../contract.ts'

/** More steps mean that something schedules itself without end. */
const stepsMax = 1_000_000

export interface WorldOptions {
  readonly size: number
  readonly release?: Release | undefined
  readonly seed?: number | undefined
  readonly delayMs?: readonly [number, number] | undefined
  readonly quotaBytes?: number | undefined
  readonly watchFragmentBytes?: number | undefined
  readonly rangeStreamShare?: number | undefined
}

/** A stream as a client sees it. */
export interface ClientStream {
  readonly input: StreamIn
  readonly messages: Buffer[]
  readonly end: { code: number; details: string } | undefined
  /** Whether the client reads: while it does not, the member may not send. */
  isReading: boolean
}

export class FakeWorld {
  readonly cluster: Cluster
  readonly commits: Commit[] = []
  readonly compactions: number[] = []
  readonly events: string[] = []
  /** How many entries were scheduled so far. */
  scheduled = 0
  readonly #random: Random
  readonly #scheduler = new Scheduler()
  /** Indexed by sender * size + receiver. */
  readonly #cut: boolean[] = []
  readonly #size: number

  constructor(options: WorldOptions) {
    this.#random = new Random(options.seed ?? 1)
    this.#size = options.size
    const [least, most] = options.delayMs ?? [0.2, 1]
    const clusterOptions: ClusterOptions = {
      size: options.size,
      release: options.release,
      quotaBytes: options.quotaBytes ?? 0,
      watchFragmentBytes: options.watchFragmentBytes,
      rangeStreamShare: options.rangeStreamShare,
      world: () => this.#memberWorld(),
      network: {
        isReachable: (from, to) => this.#cut[from * options.size + to] !== true,
        delayMs: () => this.#random.between(least, most),
      },
      observer: {
        onCommit: (commit) => this.commits.push(commit),
        onCompact: (revision) => this.compactions.push(revision),
        onEvent: (text) => this.events.push(`${this.now.toFixed(1)} ${text}`),
      },
    }
    this.cluster = createCluster(clusterOptions)
  }

  get now(): number {
    return this.#scheduler.now
  }

  /** Runs everything that is due within this time. */
  advance(ms: number): void {
    const end = this.now + ms
    let steps = 0
    for (;;) {
      const work = this.#scheduler.next(end)
      if (work === undefined) return
      if (++steps > stepsMax) throw new Error(`more than ${stepsMax} steps in ${ms} ms`)
      work()
    }
  }

  /** Runs until the condition holds, for at most this time. */
  until(condition: () => boolean, ms: number = 20_000): void {
    const end = this.now + ms
    let steps = 0
    while (!condition()) {
      const work = this.#scheduler.next(end)
      if (++steps > stepsMax) throw new Error(`not within ${stepsMax} steps`)
      if (work === undefined) throw new Error(`not within ${ms} ms`)
      work()
    }
  }

  /** Waits for a leader that all running members know. */
  elect(): number {
    this.until(() => this.cluster.leader !== undefined)
    this.advance(200)
    const { leader } = this.cluster
    if (leader === undefined) throw new Error('there is no leader')
    return leader
  }

  /** Cuts or restores one direction between two members. */
  setLink(from: number, to: number, isUp: boolean): void {
    this.#cut[from * this.#size + to] = !isUp
  }

  /** Cuts a member off, or connects it again. */
  isolate(member: number, isCut: boolean = true): void {
    for (let other = 0; other < this.cluster.members.length; other++) {
      if (other === member) continue
      this.setLink(member, other, !isCut)
      this.setLink(other, member, !isCut)
    }
    this.cluster.networkChanged()
  }

  /** Sends a request without waiting for the reply. */
  send(
    member: number,
    path: string,
    message: Buffer,
    options: { readonly needsLeader: boolean } = { needsLeader: false },
  ): { reply: CallReply | undefined } {
    const sent: { reply: CallReply | undefined } = { reply: undefined }
    this.cluster.members[member]?.call(`/etcdserverpb.${path}`, message, options, (reply) => {
      if (sent.reply !== undefined) throw new Error('replied twice')
      sent.reply = reply
    })
    return sent
  }

  call(member: number, path: string, message: Buffer, ms: number = 20_000): CallReply {
    const sent = this.send(member, path, message)
    this.until(() => sent.reply !== undefined, ms)
    return sent.reply as CallReply
  }

  watch(
    member: number,
    request: Buffer,
    options: { readonly needsLeader: boolean } = { needsLeader: true },
  ): ClientStream {
    return this.#open('openWatch', member, request, options)
  }

  rangeStream(member: number, request: Buffer): ClientStream {
    return this.#open('openRangeStream', member, request, { needsLeader: true })
  }

  #open(
    kind: 'openWatch' | 'openRangeStream',
    member: number,
    request: Buffer,
    options: { readonly needsLeader: boolean },
  ): ClientStream {
    const messages: Buffer[] = []
    const stream: { -readonly [Name in keyof ClientStream]: ClientStream[Name] } = {
      messages,
      end: undefined,
      isReading: true,
      input: undefined as unknown as StreamIn,
    }
    const opened = this.cluster.members[member]?.[kind](
      {
        send: (message) => {
          messages.push(message)
          return stream.isReading
        },
        end: (code, details) => {
          stream.end = { code, details }
        },
      },
      options,
    )
    if (opened === undefined) throw new Error(`there is no member ${member}`)
    stream.input = opened
    opened.receive(request)
    return stream
  }

  #memberWorld(): MemberWorld {
    return {
      now: () => this.now,
      after: (ms, run) => this.#after(ms, run),
      random: () => this.#random.next(),
    }
  }

  #after(ms: number, run: () => void): () => void {
    this.scheduled++
    const entry = this.#scheduler.at(this.now + ms, run)
    return () => this.#scheduler.cancel(entry)
  }
}
