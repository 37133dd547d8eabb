/** The watch streams of one member, each with one watch. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type Event,
  EventSchema,
  type WatchCreateRequest,
  WatchCreateRequestSchema,
  WatchRequestSchema,
  WatchResponseSchema,
} from '../../support/etcd-protocol/rpc_pb.ts'
import type { StreamIn, StreamOut } from './contract.ts'
import type { Header } from './machine.ts'
import { decode, encode, endOf, nameOf } from './messages.ts'
import type { MemberProcess } from './process.ts'
import * as statuses from './status.ts'
import { isDeletion, type Store, type StoredChange } from './store.ts'

/** How many responses etcd buffers per stream; further ones wait in the history. */
const queuedMax = 128
/** How many revisions are sent at a time to a watch that is behind. */
const revisionsMax = 1_000
const syncPeriodMs = 100
const progressPeriodMs = 600_000
/** The watch id of responses that are for all watches of a stream, or for none. */
const noWatch = -1n

/** The member, as its watches see it. */
export interface WatchHost {
  readonly process: MemberProcess
  readonly store: Store
  readonly revision: number
  readonly compacted: number
  /** A response that is larger is cut into fragments, if the client allows that. */
  readonly fragmentBytes: number
  /** Whether the first changes of a new watch of the past lack their previous values. */
  nextWatchLacksPrevious(): boolean
  readonly hasLeader: boolean
  header(revision: number): Header
}

type WatchState =
  | 'none'
  | 'synced'
  /** Reads the history. */
  | 'unsynced'
  /** Has responses that found no space in the buffer of the stream. */
  | 'blocked'
  /** Ended by a compaction. */
  | 'ended'

export class WatchHub {
  readonly #host: WatchHost
  readonly #streams = new Set<WatchStream>()
  #cancelSync: (() => void) | undefined

  constructor(host: WatchHost) {
    this.#host = host
  }

  open(out: StreamOut, needsLeader: boolean): StreamIn {
    const stream = new WatchStream(this.#host, out, {
      needsLeader,
      onEnd: () => this.#streams.delete(stream),
      onBehind: () => this.#scheduleSync(syncPeriodMs),
    })
    this.#host.process.run(() => {
      if (needsLeader && !this.#host.hasLeader) stream.end(statuses.noLeader)
      else this.#streams.add(stream)
    })
    return stream
  }

  /** The member has applied a revision. */
  notify(changes: readonly StoredChange[]): void {
    // Watches of the same range get the same response.
    const responses = new Map<string, readonly Buffer[]>()
    for (const stream of this.#streams) stream.notify(changes, responses)
  }

  /** Ends the streams that need a leader: there has been none for a while. */
  endWithoutLeader(): void {
    for (const stream of [...this.#streams]) {
      if (stream.needsLeader) stream.end(statuses.noLeader)
    }
  }

  crash(): void {
    for (const stream of this.#streams) stream.stop()
    this.#streams.clear()
    this.#cancelSync?.()
    this.#cancelSync = undefined
  }

  /** The period runs on its own in etcd: a watch waits for its next turn. */
  #scheduleSync(ms: number): void {
    if (this.#cancelSync !== undefined) return
    const { process } = this.#host
    const untilTurn = syncPeriodMs - (process.world.now() % syncPeriodMs)
    const delay = ms < syncPeriodMs ? ms : Math.max(1, untilTurn)
    this.#cancelSync = process.timer(delay, () => {
      this.#cancelSync = undefined
      const behind = [...this.#streams].filter(({ state }) => state === 'unsynced')
      for (const stream of behind) stream.sync()
      const still = behind.filter(({ state }) => state === 'unsynced')
      if (still.length > 0) this.#scheduleSync(still.length < behind.length ? 1 : syncPeriodMs)
    })
  }
}

interface StreamOptions {
  readonly needsLeader: boolean
  readonly onEnd: () => void
  readonly onBehind: () => void
}

class WatchStream implements StreamIn {
  state: WatchState = 'none'
  readonly #host: WatchHost
  readonly #out: StreamOut
  readonly #options: StreamOptions
  #request: WatchCreateRequest = create(WatchCreateRequestSchema)
  #key = ''
  #end: string | undefined
  /** The next revision to deliver. */
  #minRevision = 0
  /** The responses that found no space, while `blocked`. */
  #blocked: readonly Buffer[] = []
  readonly #queue: Buffer[] = []
  #isFull = false
  #isClosed = false
  /** Whether nothing was sent since the last periodic report of progress. */
  #isQuiet = true
  #lacksPrevious = false
  #cancelProgress: (() => void) | undefined

  constructor(host: WatchHost, out: StreamOut, options: StreamOptions) {
    this.#host = host
    this.#out = out
    this.#options = options
  }

  get needsLeader(): boolean {
    return this.#options.needsLeader
  }

  // ---- the client

  receive(message: Buffer): void {
    this.#host.process.run(() => {
      if (!this.#isClosed) this.#receive(message)
    })
  }

  onDrain(): void {
    this.#host.process.run(() => this.#drain())
  }

  close(): void {
    if (this.#isClosed) return
    this.stop()
    this.#options.onEnd()
  }

  end({ code, details }: statuses.Status): void {
    if (this.#isClosed) return
    this.close()
    this.#out.end(code, details)
  }

  /** Stops without a word: the process or the connection is gone. */
  stop(): void {
    this.#isClosed = true
    this.state = 'ended'
    this.#queue.length = 0
    this.#cancelProgress?.()
  }

  #receive(message: Buffer): void {
    const { requestUnion } = decode(WatchRequestSchema, message)
    if (requestUnion.case === 'createRequest') this.#create(requestUnion.value)
    else if (requestUnion.case === 'progressRequest') this.#reportProgress(noWatch)
    else if (requestUnion.case !== undefined) throw new Error(`unexpected ${requestUnion.case}`)
  }

  #create(request: WatchCreateRequest): void {
    const { revision } = this.#host
    const header = this.#host.header(revision)
    const cancelReason = refusalOf(request)
    if (cancelReason !== undefined) {
      const refused = { watchId: noWatch, created: true, canceled: true, cancelReason }
      this.#send(encode(WatchResponseSchema, { header, ...refused }))
      return
    }
    if (this.state !== 'none') throw new Error('a stream has one watch only')
    this.#request = request
    this.#key = keyOf(request)
    this.#end = endOf(request.rangeEnd)
    const start = Number(request.startRevision)
    if (start === 0 || start > revision) {
      this.state = 'synced'
      this.#minRevision = Math.max(revision + 1, start)
    } else {
      this.state = 'unsynced'
      this.#minRevision = start
      this.#lacksPrevious = this.#host.nextWatchLacksPrevious()
      this.#options.onBehind()
    }
    if (request.progressNotify) this.#startProgress()
    this.#send(encode(WatchResponseSchema, { header, created: true }))
  }

  /** Sent only when the watch has everything so far. */
  #reportProgress(watchId: bigint): void {
    const { revision } = this.#host
    if (this.state !== 'synced' || revision < this.#request.startRevision) return
    this.#offer([encode(WatchResponseSchema, { header: this.#host.header(revision), watchId })])
  }

  #startProgress(): void {
    const { process } = this.#host
    const periodMs = progressPeriodMs * (1 + process.world.random() / 10)
    const wait = () => {
      this.#cancelProgress = process.timer(periodMs, () => {
        wait()
        if (this.#isQuiet) this.#reportProgress(0n)
        this.#isQuiet = true
      })
    }
    wait()
  }

  // ---- changes

  notify(changes: readonly StoredChange[], responses: Map<string, readonly Buffer[]>): void {
    const { revision } = this.#host
    if (this.state !== 'synced' || revision < this.#minRevision) return
    const { prevKv, fragment } = this.#request
    const name = `${this.#key} ${this.#end} ${prevKv} ${fragment}`
    let messages = responses.get(name)
    if (messages === undefined) {
      messages = this.#encode(this.#eventsOf(changes))
      responses.set(name, messages)
    }
    if (messages.length === 0) return
    this.#minRevision = revision + 1
    this.#deliver(messages)
  }

  /** Sends history to a watch that is behind. */
  sync(): void {
    const { revision, compacted } = this.#host
    if (this.#minRevision < compacted) {
      const canceled = { canceled: true, compactRevision: BigInt(compacted) }
      const message = encode(WatchResponseSchema, { header: this.#host.header(0), ...canceled })
      if (this.#offer([message])) this.state = 'ended'
      return
    }
    const { events, more } = this.#history()
    this.#minRevision = more ?? Math.max(revision + 1, this.#minRevision)
    if (more === undefined) this.state = 'synced'
    this.#deliver(this.#encode(events))
    this.#lacksPrevious = false
  }

  #deliver(messages: readonly Buffer[]): void {
    if (messages.length === 0) return
    if (this.#offer(messages)) this.#isQuiet = false
    else {
      this.state = 'blocked'
      this.#blocked = messages
    }
  }

  /** The events from the next revision on, and the revision with which to continue if too many. */
  #history(): { readonly events: readonly Event[]; readonly more: number | undefined } {
    const events: Event[] = []
    let revisions = 0
    for (let revision = this.#minRevision; revision <= this.#host.revision; revision++) {
      const found = this.#eventsOf(this.#changesAt(revision))
      if (found.length === 0) continue
      if (++revisions > revisionsMax) return { events, more: revision }
      events.push(...found)
    }
    return { events, more: undefined }
  }

  /** Compaction leaves only the newest version of a key, at its revision as well. */
  #changesAt(revision: number): readonly StoredChange[] {
    const { store, compacted } = this.#host
    const changes = store.changesAt(revision)
    if (revision !== compacted) return changes
    return changes.filter(({ record, version }) => record.newest(compacted) === version)
  }

  #eventsOf(changes: readonly StoredChange[]): readonly Event[] {
    const events: Event[] = []
    for (const change of changes) {
      const { name } = change.record
      const isCovered =
        this.#end === undefined
          ? name === this.#key
          : name >= this.#key && (this.#end === '' || name < this.#end)
      if (isCovered) events.push(this.#event(change))
    }
    return events
  }

  #event({ record, version }: StoredChange): Event {
    const { kv } = version
    const before = version.revision - 1
    const isWanted = this.#request.prevKv && !this.#lacksPrevious
    const hasPrevious = isWanted && kv.createRevision !== kv.modRevision
    const isRetained = before >= this.#host.compacted
    const prevKv = hasPrevious && isRetained ? record.at(before)?.kv : undefined
    return create(EventSchema, { type: isDeletion(version) ? 1 : 0, kv, prevKv })
  }

  #encode(events: readonly Event[]): readonly Buffer[] {
    if (events.length === 0) return []
    const header = this.#host.header(this.#host.revision)
    const response = (some: readonly Event[], fragment: boolean) => {
      const init: MessageInitShape<typeof WatchResponseSchema> = {
        header,
        events: [...some],
        fragment,
      }
      return encode(WatchResponseSchema, init)
    }
    const whole = response(events, false)
    const { fragmentBytes } = this.#host
    const isSent = !this.#request.fragment || events.length < 2 || whole.length < fragmentBytes
    if (isSent) return [whole]
    const fixed = response([], true).length
    const fragments: Event[][] = [[]]
    let length = fixed
    for (const event of events) {
      const size = fieldBytes(toBinary(EventSchema, event).length)
      if (length > fixed && length + size >= fragmentBytes) {
        fragments.push([])
        length = fixed
      }
      fragments.at(-1)?.push(event)
      length += size
    }
    return fragments.map((some, index) => response(some, index < fragments.length - 1))
  }

  // ---- the buffer of the stream

  /** False when there is no space for a further response. */
  #offer(messages: readonly Buffer[]): boolean {
    if (this.#queue.length >= queuedMax) return false
    for (const message of messages) this.#send(message)
    return true
  }

  #send(message: Buffer): void {
    if (this.#isFull) this.#queue.push(message)
    else if (!this.#out.send(message)) this.#isFull = true
  }

  #drain(): void {
    if (this.#isClosed) return
    this.#isFull = false
    for (const message of this.#queue.splice(0)) this.#send(message)
    if (this.state !== 'blocked' || !this.#offer(this.#blocked)) return
    this.#blocked = []
    // It continues from the history.
    this.state = this.#minRevision <= this.#host.revision ? 'unsynced' : 'synced'
    if (this.state === 'unsynced') this.#options.onBehind()
  }
}

/** A watch without a key watches the first possible one. */
function keyOf({ key }: WatchCreateRequest): string {
  return key.length === 0 ? '\0' : nameOf(key)
}

function refusalOf(request: WatchCreateRequest): string | undefined {
  const end = endOf(request.rangeEnd)
  if (request.startRevision < 0n) return statuses.compacted.details
  if (end !== undefined && end !== '' && keyOf(request) >= end)
    return 'mvcc: watcher range is empty'
  return undefined
}

/** The length of a field whose tag has one byte and whose content has `length`. */
function fieldBytes(length: number): number {
  let varint = 1
  for (let rest = length; rest >= 0x80; rest >>>= 7) varint++
  return 1 + varint + length
}
