/**
 * The watch streams of one member.
 */

import { decodeWatch, type WatchCreate } from './codec/requests.ts'
import { Encoder, type Header, type WatchEvent } from './codec/responses.ts'
import type { StreamIn, StreamOut } from './contract.ts'
import type { MemberProcess } from './process.ts'
import * as statuses from './status.ts'
import type { Store, StoredChange } from './store/store.ts'

/** etcd buffers so many responses per stream; what exceeds it waits in the history. */
const queuedMax = 128
/** At most so many revisions are sent at a time to a watcher that is behind. */
const revisionsMax = 1_000
const syncPeriodMs = 100
const progressPeriodMs = 600_000
/** The watch id of responses that are for all watchers, or for none. */
const noWatch = -1

/** The member, as its watches see it. */
export interface WatchHost {
  readonly process: MemberProcess
  readonly store: Store
  readonly encoder: Encoder
  readonly revision: number
  readonly compacted: number
  /** A response that is larger is cut into fragments, if the client allows that. */
  readonly fragmentBytes: number
  readonly hasLeader: boolean
  header(revision: number): Header
}

interface Watcher {
  readonly stream: Stream
  readonly id: number
  readonly request: WatchCreate
  /** The next revision to deliver. */
  minRevision: number
  state: 'synced' | 'unsynced' | 'blocked' | 'ended'
  /** With `blocked`: the responses that found no room. */
  blocked: readonly Buffer[]
  /** With progress_notify: whether the next period has something to report. */
  reportsProgress: boolean
}

/** A response of this revision that other watchers may need as well. */
interface Shared {
  readonly id: number
  readonly prevKv: boolean
  readonly fragment: boolean
  readonly messages: readonly Buffer[]
}

export class WatchHub {
  readonly #host: WatchHost
  readonly #streams = new Set<Stream>()
  readonly #synced = new Set<Watcher>()
  readonly #unsynced = new Set<Watcher>()
  #cancelSync: (() => void) | undefined

  constructor(host: WatchHost) {
    this.#host = host
  }

  open(out: StreamOut, needsLeader: boolean): StreamIn {
    const stream = new Stream(this, this.#host, out)
    this.#host.process.run(() => {
      if (needsLeader && !this.#host.hasLeader) {
        stream.end(statuses.noLeader.code, statuses.noLeader.details)
        return
      }
      stream.needsLeader = needsLeader
      this.#streams.add(stream)
    })
    return stream
  }

  /** The member applied a revision. */
  notify(revision: number, changes: readonly StoredChange[]): void {
    if (this.#synced.size === 0) return
    const shared: Shared[] = []
    for (const watcher of this.#synced) {
      if (revision < watcher.minRevision) continue
      const messages = this.#responses(watcher, revision, { changes, shared })
      if (messages === undefined) continue
      watcher.minRevision = revision + 1
      if (watcher.stream.offer(messages)) watcher.reportsProgress = false
      else {
        this.#synced.delete(watcher)
        watcher.state = 'blocked'
        watcher.blocked = messages
      }
    }
  }

  /** Ends the streams that need a leader: there has been none for a while. */
  endWithoutLeader(): void {
    for (const stream of [...this.#streams]) {
      if (stream.needsLeader) stream.end(statuses.noLeader.code, statuses.noLeader.details)
    }
  }

  /** The state was replaced by that of another member: every watcher reads the history again. */
  installed(): void {
    for (const watcher of this.#synced) {
      watcher.state = 'unsynced'
      this.#unsynced.add(watcher)
    }
    this.#synced.clear()
    this.#scheduleSync(syncPeriodMs)
  }

  crash(): void {
    for (const stream of this.#streams) stream.forget()
    this.#streams.clear()
    this.#synced.clear()
    this.#unsynced.clear()
    this.#cancelSync?.()
    this.#cancelSync = undefined
  }

  add(watcher: Watcher): void {
    const { revision } = this.#host
    const { startRevision } = watcher.request
    if (startRevision === 0 || startRevision > revision) {
      watcher.minRevision = Math.max(revision + 1, startRevision)
      this.#synced.add(watcher)
      return
    }
    watcher.state = 'unsynced'
    this.#unsynced.add(watcher)
    this.#scheduleSync(syncPeriodMs)
  }

  remove(watcher: Watcher): void {
    this.#synced.delete(watcher)
    this.#unsynced.delete(watcher)
    watcher.state = 'ended'
    watcher.blocked = []
  }

  forget(stream: Stream): void {
    this.#streams.delete(stream)
  }

  /** The responses of a blocked watcher were sent: it continues from the history. */
  unblocked(watcher: Watcher): void {
    watcher.blocked = []
    if (watcher.minRevision <= this.#host.revision) {
      watcher.state = 'unsynced'
      this.#unsynced.add(watcher)
      this.#scheduleSync(syncPeriodMs)
    } else {
      watcher.state = 'synced'
      this.#synced.add(watcher)
    }
  }

  /** The period runs on its own in etcd: a watcher waits for its next turn. */
  #scheduleSync(ms: number): void {
    if (this.#cancelSync !== undefined || this.#unsynced.size === 0) return
    const { process } = this.#host
    const untilTurn = syncPeriodMs - (process.world.now() % syncPeriodMs)
    const delay = ms < syncPeriodMs ? ms : Math.max(1, untilTurn)
    this.#cancelSync = process.timer(delay, () => {
      this.#cancelSync = undefined
      const before = this.#unsynced.size
      for (const watcher of [...this.#unsynced]) this.#sync(watcher)
      this.#scheduleSync(this.#unsynced.size < before ? 1 : syncPeriodMs)
    })
  }

  #sync(watcher: Watcher): void {
    const { revision, compacted } = this.#host
    if (watcher.minRevision < compacted) {
      const canceled = { watchId: watcher.id, canceled: true, compactRevision: compacted }
      const message = this.#host.encoder.watch({ header: this.#host.header(0), ...canceled })
      if (!watcher.stream.offer([message])) return
      this.#unsynced.delete(watcher)
      watcher.state = 'ended'
      return
    }
    const { events, more } = this.#history(watcher)
    watcher.minRevision = more ?? Math.max(revision + 1, watcher.minRevision)
    if (events.length > 0) {
      const messages = this.#encode(watcher, revision, events)
      if (!watcher.stream.offer(messages)) {
        this.#unsynced.delete(watcher)
        watcher.state = 'blocked'
        watcher.blocked = messages
        return
      }
      watcher.reportsProgress = false
    }
    if (more !== undefined) return
    this.#unsynced.delete(watcher)
    watcher.state = 'synced'
    this.#synced.add(watcher)
  }

  /** The events from the next revision on, and the revision with which to continue if too many. */
  #history(watcher: Watcher): {
    readonly events: readonly WatchEvent[]
    readonly more: number | undefined
  } {
    const { request, minRevision } = watcher
    const events: WatchEvent[] = []
    let revisions = 0
    for (let revision = minRevision; revision <= this.#host.revision; revision++) {
      const changes = this.#changesAt(revision, request)
      if (changes.length === 0) continue
      if (++revisions > revisionsMax) return { events, more: revision }
      for (const change of changes) {
        if (!isFiltered(request, change)) events.push(this.#event(watcher, change))
      }
    }
    return { events, more: undefined }
  }

  /** Compaction leaves only the newest version of a key, at its revision as well. */
  #changesAt(revision: number, request: WatchCreate): readonly StoredChange[] {
    const { store, compacted } = this.#host
    const changes = store.changesAt(revision).filter((change) => covers(request, change))
    if (revision !== compacted) return changes
    return changes.filter(({ record, version }) => record.newest(compacted) === version)
  }

  #event({ request }: Watcher, change: StoredChange): WatchEvent {
    const { version, record } = change
    const isCreate = version.createRevision === version.revision
    if (!request.prevKv || isCreate) return { change, prev: undefined }
    const before = version.revision - 1
    const prev = before < this.#host.compacted ? undefined : record.at(before)
    return { change, prev }
  }

  /** The response for a revision; undefined when it has no event for this watcher. */
  #responses(
    watcher: Watcher,
    revision: number,
    made: { readonly changes: readonly StoredChange[]; readonly shared: Shared[] },
  ): readonly Buffer[] | undefined {
    const { request } = watcher
    const wanted = coveredBy(request, made.changes)
    if (wanted.length === 0) return undefined
    const isWhole = wanted.length === made.changes.length && !request.noPut && !request.noDelete
    const same = isWhole ? sameIn(made.shared, watcher) : undefined
    if (same !== undefined) return same
    const events: WatchEvent[] = []
    for (const change of wanted) {
      if (!isFiltered(request, change)) events.push(this.#event(watcher, change))
    }
    if (events.length === 0) return undefined
    const messages = this.#encode(watcher, revision, events)
    const { prevKv, fragment } = request
    if (isWhole) made.shared.push({ id: watcher.id, prevKv, fragment, messages })
    return messages
  }

  #encode(watcher: Watcher, revision: number, events: readonly WatchEvent[]): readonly Buffer[] {
    const header = this.#host.header(revision)
    const whole = { header, watchId: watcher.id, events }
    const { encoder, fragmentBytes } = this.#host
    if (!watcher.request.fragment || events.length < 2) return [encoder.watch(whole)]
    const bytes = events.map((event) => Encoder.eventBytes(event))
    const fixed = encoder.watch({ ...whole, events: [] }).length
    const total = bytes.reduce((sum, length) => sum + length, fixed)
    if (total < fragmentBytes) return [encoder.watch(whole)]
    const messages: Buffer[] = []
    // The mark of a fragment takes two bytes.
    let length = fixed + 2
    let from = 0
    for (const [index, size] of bytes.entries()) {
      if (index > from && length + size >= fragmentBytes) {
        messages.push(
          encoder.watch({ ...whole, events: events.slice(from, index), fragment: true }),
        )
        from = index
        length = fixed + 2
      }
      length += size
    }
    messages.push(encoder.watch({ ...whole, events: events.slice(from) }))
    return messages
  }
}

class Stream implements StreamIn {
  needsLeader = false
  readonly #hub: WatchHub
  readonly #host: WatchHost
  readonly #out: StreamOut
  readonly #watchers = new Map<number, Watcher>()
  readonly #queue: Buffer[] = []
  #isBlocked = false
  #isClosed = false
  #nextId = 0
  #cancelProgress: (() => void) | undefined

  constructor(hub: WatchHub, host: WatchHost, out: StreamOut) {
    this.#hub = hub
    this.#host = host
    this.#out = out
  }

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
    this.forget()
    for (const watcher of this.#watchers.values()) this.#hub.remove(watcher)
    this.#watchers.clear()
    this.#hub.forget(this)
  }

  end(code: number, details: string): void {
    if (this.#isClosed) return
    this.close()
    this.#out.end(code, details)
  }

  /** Stops without a word: the process or the connection is gone. */
  forget(): void {
    this.#isClosed = true
    this.#queue.length = 0
    this.#cancelProgress?.()
    this.#cancelProgress = undefined
  }

  /** False when there is no room for a further response. */
  offer(messages: readonly Buffer[]): boolean {
    if (this.#queue.length >= queuedMax) return false
    for (const message of messages) this.#send(message)
    return true
  }

  #send(message: Buffer): void {
    if (this.#isBlocked) this.#queue.push(message)
    else if (!this.#out.send(message)) this.#isBlocked = true
  }

  #drain(): void {
    if (this.#isClosed) return
    this.#isBlocked = false
    const queue = this.#queue.splice(0)
    for (const message of queue) this.#send(message)
    for (const watcher of this.#watchers.values()) {
      if (watcher.state === 'blocked' && this.offer(watcher.blocked)) this.#hub.unblocked(watcher)
    }
  }

  #receive(message: Buffer): void {
    let request: ReturnType<typeof decodeWatch>
    try {
      request = decodeWatch(message)
    } catch {
      this.end(statuses.notDecodable.code, statuses.notDecodable.details)
      return
    }
    if (request === undefined) return
    if (request.kind === 'create') this.#create(request)
    else if (request.kind === 'cancel') this.#cancel(request.watchId)
    else this.#reportProgress([...this.#watchers.values()], noWatch)
  }

  #create(request: WatchCreate): void {
    const refusal = this.#refusal(request)
    const header = this.#host.header(this.#host.revision)
    if (refusal !== undefined) {
      const refused = { watchId: noWatch, created: true, canceled: true, cancelReason: refusal }
      this.#send(this.#host.encoder.watch({ header, ...refused }))
      return
    }
    const id = this.#idFor(request)
    const watcher: Watcher = {
      stream: this,
      id,
      request,
      minRevision: request.startRevision,
      state: 'synced',
      blocked: [],
      reportsProgress: true,
    }
    this.#watchers.set(id, watcher)
    this.#hub.add(watcher)
    if (request.progressNotify) this.#startProgress()
    this.#send(this.#host.encoder.watch({ header, watchId: id, created: true }))
  }

  #refusal({ startRevision, key, end, watchId }: WatchCreate): string | undefined {
    if (startRevision < 0) return statuses.compacted.details
    if (end !== undefined && end !== '' && key >= end) return 'mvcc: watcher range is empty'
    if (watchId !== 0 && this.#watchers.has(watchId)) {
      return 'mvcc: duplicate watch ID provided on the WatchStream'
    }
    return undefined
  }

  #idFor({ watchId }: WatchCreate): number {
    if (watchId !== 0) return watchId
    while (this.#watchers.has(this.#nextId)) this.#nextId++
    return this.#nextId++
  }

  #cancel(id: number): void {
    const watcher = this.#watchers.get(id)
    if (watcher === undefined) return
    this.#hub.remove(watcher)
    this.#watchers.delete(id)
    const header = this.#host.header(this.#host.revision)
    this.#send(this.#host.encoder.watch({ header, watchId: id, canceled: true }))
  }

  /**
   * Sent only when all of the watchers have everything so far. A watcher that was ended by a
   * compaction stays in its stream, and there is no progress any more.
   */
  #reportProgress(watchers: readonly Watcher[], watchId: number): void {
    const { revision } = this.#host
    for (const { state, request } of watchers) {
      if (state !== 'synced' || revision < request.startRevision) return
    }
    if (watchers.length === 0) return
    this.offer([this.#host.encoder.watch({ header: this.#host.header(revision), watchId })])
  }

  #startProgress(): void {
    if (this.#cancelProgress !== undefined) return
    const { process } = this.#host
    const periodMs = progressPeriodMs * (1 + process.world.random() / 10)
    const wait = () => {
      this.#cancelProgress = process.timer(periodMs, () => {
        wait()
        for (const watcher of this.#watchers.values()) {
          if (!watcher.request.progressNotify) continue
          if (watcher.reportsProgress) this.#reportProgress([watcher], watcher.id)
          watcher.reportsProgress = true
        }
      })
    }
    wait()
  }
}

function covers({ key, end }: WatchCreate, { record }: StoredChange): boolean {
  const { name } = record
  if (end === undefined) return name === key
  return name >= key && (end === '' || name < end)
}

/** Most revisions have one change: then nothing is copied. */
function coveredBy(
  request: WatchCreate,
  changes: readonly StoredChange[],
): readonly StoredChange[] {
  if (changes.length > 1) return changes.filter((change) => covers(request, change))
  return covers(request, changes[0] as StoredChange) ? changes : []
}

function sameIn(
  shared: readonly Shared[],
  { id, request }: Watcher,
): readonly Buffer[] | undefined {
  for (const other of shared) {
    const isSame = other.prevKv === request.prevKv && other.fragment === request.fragment
    if (isSame && other.id === id) return other.messages
  }
  return undefined
}

function isFiltered(request: WatchCreate, { version }: StoredChange): boolean {
  return version.version === 0 ? request.noDelete : request.noPut
}
