/**
 * The order in which the checker sees what clients were told and what etcd committed.
 *
 * A simulated etcd reports each commit before any client can learn of it, so entries are checked at
 * once (`immediately`). The history of a real etcd is read after the run: entries are recorded, and
 * replayed with each commit in its latest possible place, right before the first entry that proves
 * it. A read is then linearizable if it returned a state no older than everything that had been
 * proved when it began.
 */
import type { StoredEvent, WatchBatch, WatchItem } from '../../../src/storage/storage.ts'
import type { Commit } from './commit.ts'
import { revisionIn } from './stored-text.ts'

/** The parts of an event that are checked. */
export type SeenEvent = Pick<StoredEvent, 'key' | 'version' | 'body' | 'writtenAtMs'>

export type SeenItem =
  | { readonly type: 'put'; readonly stored: SeenEvent; readonly previous: SeenEvent | undefined }
  | { readonly type: 'delete'; readonly stored: SeenEvent }

export interface SeenBatch {
  readonly items: readonly SeenItem[]
  readonly version: number
}

/** What an entry shows about etcd. */
export interface Proof {
  /** This version existed. */
  readonly version?: number | undefined
  /** Returns whether the commits so far explain the entry; otherwise a later one has to. */
  readonly isExplained?: () => boolean
}

export interface Journal {
  add(check: () => void, proof?: Proof): void
  /** Events and bytes that outlive the call; production code reuses its buffers. */
  retain<Seen extends SeenEvent>(stored: Seen): Seen | SeenEvent
  retainBytes(body: Buffer): Buffer
  retainBatch(batch: WatchBatch): SeenBatch
}

export const immediately: Journal = {
  add: (check) => check(),
  retain: (stored) => stored,
  retainBytes: (body) => body,
  retainBatch: (batch) => batch,
}

interface Entry {
  readonly check: () => void
  readonly proof: Proof | undefined
}

export interface ReplayOptions {
  /** All commits, in order. */
  readonly commits: readonly Commit[]
  /** The newest revision of etcd, which may have changed other keys. */
  readonly newestRevision: number
  readonly onCommit: (commit: Commit) => void
  /** Returns whether all writes of the commit have begun by now. */
  readonly isPossible: (commit: Commit) => boolean
  /** A violation makes what follows it meaningless. */
  readonly isOver: () => boolean
}

export class RecordedJournal implements Journal {
  readonly #entries: Entry[] = []
  /** Hundreds of watchers receive the same items: each is stored once, by version. */
  readonly #events = new Map<number, SeenEvent>()
  readonly #items = new Map<number, SeenItem>()

  get length(): number {
    return this.#entries.length
  }

  add(check: () => void, proof?: Proof): void {
    this.#entries.push({ check, proof })
  }

  retain(stored: SeenEvent): SeenEvent {
    const { key, version, body, writtenAtMs } = stored
    const known = this.#events.get(version)
    if (
      known?.key.name === key.name &&
      known.key.namespace === key.namespace &&
      known.writtenAtMs === writtenAtMs &&
      known.body.equals(body)
    ) {
      return known
    }
    const copy = { key, version, writtenAtMs, body: Buffer.from(body) }
    if (known === undefined) this.#events.set(version, copy)
    return copy
  }

  retainBytes(body: Buffer): Buffer {
    return Buffer.from(body)
  }

  retainBatch({ items, version }: WatchBatch): SeenBatch {
    return { items: items.map((item) => this.#retainItem(item)), version }
  }

  #retainItem(item: WatchItem): SeenItem {
    const stored = this.retain(item.stored)
    const previous =
      item.type === 'put' && item.previous !== undefined ? this.retain(item.previous) : undefined
    const known = this.#items.get(stored.version)
    const knownPrevious = known?.type === 'put' ? known.previous : undefined
    if (known?.type === item.type && known.stored === stored && knownPrevious === previous) {
      return known
    }
    const retained: SeenItem =
      item.type === 'put' ? { type: 'put', stored, previous } : { type: 'delete', stored }
    if (known === undefined) this.#items.set(stored.version, retained)
    return retained
  }

  /** Checks all entries. Commits that no entry proves come last. */
  replay(options: ReplayOptions): void {
    const feed = new CommitFeed(options)
    for (const { check, proof } of this.#entries) {
      if (options.isOver()) return
      if (proof?.version !== undefined) feed.advanceTo(revisionIn(proof.version))
      while (proof?.isExplained?.() === false && feed.canAdvance) feed.advance()
      check()
    }
    feed.advanceTo(options.newestRevision)
  }
}

class CommitFeed {
  readonly #options: ReplayOptions
  #next = 0
  /** An empty etcd is at revision 1. */
  #revision = 1

  constructor(options: ReplayOptions) {
    this.#options = options
  }

  /** The next commit may explain what the present state does not. */
  get canAdvance(): boolean {
    const commit = this.#options.commits[this.#next]
    return commit !== undefined && this.#options.isPossible(commit)
  }

  advance(): void {
    const commit = this.#options.commits[this.#next]
    if (commit === undefined) return
    this.#next++
    this.#revision = commit.revision
    this.#options.onCommit(commit)
  }

  /** A revision that changed no event is a commit without changes. */
  advanceTo(revision: number): void {
    const { commits, newestRevision, onCommit } = this.#options
    while ((commits[this.#next]?.revision ?? Number.POSITIVE_INFINITY) <= revision) this.advance()
    if (revision <= this.#revision || revision > newestRevision) return
    this.#revision = revision
    onCommit({ revision, at: 0, changes: [] })
  }
}
