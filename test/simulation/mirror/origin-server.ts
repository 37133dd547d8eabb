/**
 * The simulated API server of an origin, and its connections: the network between it and the
 * replicas delays, holds and resets like TCP does. Each request has a connection of its own.
 */
import { type OriginChange, OriginError, type OriginPage } from '../../../src/mirror/origin.ts'
import type { Random } from '../../support/random.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Scheduler } from '../kernel/scheduler.ts'
import { expired, itemOf, OriginLists, type PageRequest } from './origin-lists.ts'
import type { OriginModel, OriginRecord } from './origin-model.ts'
import { OriginNetwork } from './origin-network.ts'

const chunkUsual = 250
/** Changes that a watch can begin from. */
const historyMax = 8_000
/** The server waits when a client has not read this many changes. */
const unreadMax = 1_000
const pumpMs = 4
const retryPumpMs = 50
/** Between two messages of a watch. */
const tickMs = 30
const bookmarkEveryMs = 5_000

/** The client's side of a request; its functions are called in the client's process. */
export interface Receiver {
  readonly process: SimulatedProcess
  /** How many changes it has received and not read. */
  readonly unread: number
  page?(page: OriginPage): void
  changes?(changes: readonly OriginChange[]): void
  /** The server ended the response; undefined: without an error. */
  end(error: OriginError | undefined): void
}

export interface WatchRequest {
  readonly namespace: string | undefined
  readonly from: number
}

/** A request with its connection. */
export class OriginCall {
  readonly replica: number
  readonly receiver: Receiver
  /** Set when one of the two sides has ended it. */
  isEnded = false
  /** The next change that a watch sends. */
  next = 0
  watch: WatchRequest | undefined
  isPumpDue = false
  bookmarkAt = 0

  constructor(replica: number, receiver: Receiver) {
    this.replica = replica
    this.receiver = receiver
  }
}

export interface OriginServerOptions {
  readonly model: OriginModel
  readonly scheduler: Scheduler
  readonly random: Random
  readonly replicas: number
  readonly hasBookmarks: boolean
}

export class OriginServer {
  readonly model: OriginModel
  readonly #options: OriginServerOptions
  readonly network: OriginNetwork
  readonly #calls = new Set<OriginCall>()
  readonly #watches = new Set<OriginCall>()
  readonly #lists: OriginLists
  /** Replicas and streams that have got a page since the last restore. */
  readonly #answered = new Set<string>()
  #restores = 0
  isUp = true
  #isStopped = false
  #waiting: (() => void)[] = []
  /** The share of requests that it refuses, and how: 429, 503, or as an operator must fix it. */
  refuses: { readonly share: number; readonly how: 'overloaded' | 'forbidden' } | undefined
  /** How many changes a message of a watch has at most. */
  watchChunk: number = chunkUsual
  /** How often a watch sends changes again that it has sent before. */
  repeatShare = 0

  constructor(options: OriginServerOptions) {
    this.#options = options
    this.model = options.model
    this.#lists = new OriginLists(options.model)
    this.network = new OriginNetwork(options.scheduler, options.random, options.replicas)
  }

  // ---- requests

  page(call: OriginCall, request: PageRequest): void {
    this.#open(call, () => {
      const refusal = this.#refusal()
      const answer = refusal ?? this.#lists.page(request)
      if (answer instanceof OriginError) this.#end(call, answer)
      else {
        const restores = this.#restores
        this.#toReplica(call, () => {
          const stream = `${call.replica}/${request.namespace ?? ''}`
          if (restores === this.#restores) this.#answered.add(stream)
          call.receiver.page?.(answer)
        })
        this.#end(call, undefined)
      }
    })
  }

  watch(call: OriginCall, request: WatchRequest): void {
    this.#open(call, () => {
      const refusal =
        this.#refusal() ?? (request.from < this.model.compacted ? expired() : undefined)
      if (refusal !== undefined) {
        this.#end(call, refusal)
        return
      }
      call.watch = request
      call.next = this.model.indexAfter(request.from)
      call.bookmarkAt = this.#now + bookmarkEveryMs
      this.#watches.add(call)
      // The headers of the response.
      this.#toReplica(call, () => call.receiver.changes?.([]))
      this.#pumpSoon(call, pumpMs)
    })
  }

  /** Returns whether a replica has got a version of this stream since the last restore. */
  hasAnswered(replica: number, stream: string): boolean {
    return this.#answered.has(`${replica}/${stream}`)
  }

  /** The client has ended the request. */
  cancel(call: OriginCall): void {
    call.isEnded = true
    this.#calls.delete(call)
    this.#watches.delete(call)
  }

  /** The process of a replica has ended. */
  replicaEnded(replica: number): void {
    for (const call of [...this.#calls]) if (call.replica === replica) this.cancel(call)
  }

  /** The model has new changes. */
  changed(): void {
    this.model.forgetOld(historyMax)
    for (const call of this.#watches) this.#pumpSoon(call, pumpMs)
  }

  // ---- faults

  /** The process ends: connections are reset, and refused until it starts again. */
  crash(): void {
    this.isUp = false
    this.#waiting = []
    this.#isStopped = false
    this.reset(() => true)
  }

  start(): void {
    this.isUp = true
  }

  stop(): void {
    this.#isStopped = true
  }

  resume(): void {
    this.#isStopped = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const run of waiting) this.#run(run)
  }

  /** Resets connections: what was on its way is lost. */
  reset(chooses: (replica: number) => boolean): number {
    let count = 0
    for (const call of [...this.#calls]) {
      if (!chooses(call.replica)) continue
      count++
      this.#end(call, new OriginError('unavailable', 'read ECONNRESET'))
    }
    return count
  }

  /** Forgets all history before now: older watches and pages get 410. */
  compact(): void {
    this.model.compacted = this.model.version
    this.#lists.expireAll()
  }

  /** The process has to start again for that. */
  restore(version: number): void {
    this.model.restore({ version })
    this.#lists.expireAll()
    this.reset(() => true)
    this.#answered.clear()
    this.#restores++
  }

  heal(): void {
    this.isUp = true
    this.refuses = undefined
    this.repeatShare = 0
    this.watchChunk = chunkUsual
    this.network.heal()
    this.resume()
  }

  // ---- responses

  #pumpSoon(call: OriginCall, ms: number): void {
    if (call.isPumpDue) return
    call.isPumpDue = true
    this.#after(ms, () =>
      this.#run(() => {
        call.isPumpDue = false
        if (!call.isEnded) this.#pump(call)
      }),
    )
  }

  /** Sends what is new. */
  #pump(call: OriginCall): void {
    const { model } = this
    const { receiver } = call
    const { log } = model
    if (call.next >= log.length && !this.#isBookmarkDue(call)) return
    if (receiver.unread > unreadMax) {
      this.#pumpSoon(call, retryPumpMs)
      return
    }
    const next = log[call.next]
    // A client that is too slow loses the history that it would need.
    if (next !== undefined && next.version < model.compacted) {
      this.#end(call, expired())
      return
    }
    const changes = this.#changesFor(call)
    if (changes.length > 0) this.#toReplica(call, () => receiver.changes?.(changes))
    if (call.next < log.length) this.#pumpSoon(call, tickMs)
  }

  #changesFor(call: OriginCall): readonly OriginChange[] {
    const { model } = this
    const { namespace } = call.watch as WatchRequest
    const [first, end] = model.rangeOf(namespace)
    const from = call.next
    const until = Math.min(model.log.length, from + this.watchChunk)
    const changes: OriginChange[] = []
    const add = (index: number): void => {
      const record = model.log[index] as OriginRecord
      if (record.key >= first && record.key < end) changes.push(this.#changeOf(record))
    }
    for (let index = from; index < until; index++) add(index)
    if (this.repeatShare > 0 && this.#options.random.chance(this.repeatShare)) {
      for (let index = Math.max(0, from - 3); index < until; index++) add(index)
    }
    call.next = until
    if (this.#isBookmarkDue(call) && until === model.log.length) {
      call.bookmarkAt = this.#now + bookmarkEveryMs
      changes.push({ type: 'bookmark', resourceVersion: String(model.version) })
    }
    return changes
  }

  #isBookmarkDue(call: OriginCall): boolean {
    return this.#options.hasBookmarks && this.#now >= call.bookmarkAt
  }

  #changeOf({ kind, state, version }: OriginRecord): OriginChange {
    return { type: kind === 'put' ? 'put' : 'delete', ...itemOf(this.model, state, version) }
  }

  #refusal(): OriginError | undefined {
    const { random } = this.#options
    if (this.refuses === undefined || !random.chance(this.refuses.share)) return undefined
    if (this.refuses.how === 'forbidden') {
      return new OriginError('refused', 'the origin responded 403: events is forbidden')
    }
    const retryAfterMs = random.chance(0.5) ? random.between(500, 4_000) : undefined
    return new OriginError('unavailable', 'the origin responded 429', { retryAfterMs })
  }

  // ---- the network

  get #now(): number {
    return this.#options.scheduler.now
  }

  #open(call: OriginCall, serve: () => void): void {
    this.#calls.add(call)
    this.network.send(call.replica, 'toServer', () => {
      if (call.isEnded) return
      if (!this.isUp) {
        this.#end(call, new OriginError('unavailable', 'connect ECONNREFUSED'))
        return
      }
      this.#run(() => {
        if (!call.isEnded) serve()
      })
    })
  }

  #end(call: OriginCall, error: OriginError | undefined): void {
    this.#toReplica(call, () => {
      call.isEnded = true
      call.receiver.end(error)
    })
    this.#calls.delete(call)
    this.#watches.delete(call)
  }

  #toReplica(call: OriginCall, run: () => void): void {
    this.network.send(call.replica, 'toReplica', () => {
      call.receiver.process.after(0, () => {
        if (!call.isEnded) run()
      })
    })
  }

  #after(ms: number, run: () => void): void {
    this.#options.scheduler.at(this.#now + ms, run)
  }

  /** Runs as the server's process: when it is stopped, later; never if it ends before. */
  #run(run: () => void): void {
    if (!this.isUp) return
    if (this.#isStopped) this.#waiting.push(run)
    else run()
  }
}
