/**
 * All events as of one version, sorted and indexed, and snapshots of some earlier states for
 * readers that have not finished with them.
 *
 * An earlier state shares everything with the present except what has changed since. It delays the
 * release of rows that only it still shows, so states are bounded in number, in idle time, and in the
 * bytes they retain; the oldest is evicted first. A reader that comes back for an evicted state
 * reads it from the store.
 */
import { KnownOwners } from '../../incidents/known-owners.ts'
import type { Clock } from '../../lib/clock.ts'
import {
  beginning,
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../../storage/storage.ts'
import { storedBytes } from '../../storage/trailer.ts'
import { EventIndexes, type IndexViews } from './event-indexes.ts'
import { EventTable } from './event-table.ts'
import { NamespaceCounts } from './namespaces.ts'
import { orderKey, viewOf } from './order-key.ts'
import { PresentRows } from './present-rows.ts'
import { RegardedKinds } from './regarded-kinds.ts'
import type { TreeView } from './slot-tree.ts'

export interface MemoryBounds {
  readonly statesMax: number
  /** A state that no page was read from for this long is evicted. */
  readonly stateAgeMsMax: number
  /** Bytes that earlier states may retain and the present does not need. */
  readonly stateBytesMax: number
}

/** Pages of one list follow each other within seconds; a slower client is served by etcd. */
export const defaultMemoryBounds: MemoryBounds = {
  statesMax: 256,
  stateAgeMsMax: 60_000,
  stateBytesMax: 128 * 1024 * 1024,
}

/** Rows freed with each change besides its own: an evicted state may release many at once. */
const freedPerChange = 8

export interface ReaderKind {
  /** It will read further pages. */
  readonly isForPages?: boolean
  /** It calls `finish` when it has read its last page. */
  readonly isReadOnce?: boolean | undefined
}

/** Everything at one version. */
export interface State extends IndexViews {
  readonly version: Version
  /** Set for the present only, and valid until the next change. */
  readonly rows?: PresentRows | undefined
}

/** A snapshot that later changes do not affect. */
interface Snapshot extends State {
  /** When the snapshot was taken or last read. */
  usedAtMs: number
  readonly bytesCopiedBefore: number
  /** Rows in this state that no later state has. */
  readonly retired: number[]
  retiredBytes: number
  /** Readers in the middle of a time-sliced read. The last one drops it if no pages follow. */
  pins: number
  isForPages: boolean
  /** Has readers that do not call `finish`, so that it may be read again at any time. */
  isShared: boolean
  /** It may belong to another history: only readers that already have it may finish with it. */
  isForgotten: boolean
}

export class EventMemory {
  readonly table: EventTable = new EventTable()
  readonly kinds: RegardedKinds = new RegardedKinds()
  readonly owners: KnownOwners = new KnownOwners()
  readonly namespaces: NamespaceCounts = new NamespaceCounts()
  readonly #bounds: MemoryBounds
  readonly #clock: Clock
  readonly #indexes: EventIndexes = new EventIndexes(this.table)
  readonly #rows = new PresentRows()
  /** Oldest first. */
  readonly #snapshots: Snapshot[] = []
  readonly #dead: number[] = []
  #version: Version = beginning
  /** False while events are loaded: the present is a mixture of two states under the old version. */
  #isWhole = true

  constructor(bounds: MemoryBounds, clock: Clock) {
    this.#bounds = bounds
    this.#clock = clock
  }

  get version(): Version {
    return this.#version
  }

  get count(): number {
    return this.#indexes.peekByKey().size
  }

  get statesKept(): number {
    return this.#snapshots.length
  }

  /** Returns the previous state of the event, if any, with a view of its body. */
  put(stored: StoredEvent): StoredEvent | undefined {
    const slot = this.table.add(orderKey(stored.key), stored)
    this.#rows.add(slot)
    this.kinds.note(stored.key.cluster, stored.fields.regarding)
    this.owners.learn(stored.key, stored.fields)
    const old = this.#indexes.put(slot)
    if (old === undefined) {
      this.namespaces.added(stored)
      this.#freeSome()
      return undefined
    }
    const previous = this.table.read(old)
    this.namespaces.resized(stored.key, storedBytes(stored) - storedBytes(previous))
    this.#retire(old)
    return previous
  }

  /** Returns the last state of the event, if any, with a view of its body. */
  delete(key: EventKey, version: Version): StoredEvent | undefined {
    const slot = this.find(orderKey(key))
    if (slot === undefined) return undefined
    const previous = this.table.read(slot)
    this.#remove(slot, key, version)
    return previous
  }

  /** Removes a row during loading, when changes have no version of their own. */
  remove(slot: number): void {
    this.#remove(slot, this.table.read(slot).key, this.#version)
  }

  #remove(slot: number, key: EventKey, version: Version): void {
    this.namespaces.removed(key, version, this.table.storedBytesOf(slot))
    this.#indexes.remove(slot)
    this.#retire(slot)
  }

  /** All changes up to this version have been applied. */
  reach(version: Version): void {
    this.#version = version
    this.#isWhole = true
    this.namespaces.follow()
    this.#trim()
  }

  find(key: Buffer): number | undefined {
    const view = viewOf(key)
    return this.#indexes.peekByKey().find((slot) => this.table.compareKey(slot, view))
  }

  /** The present state. Valid until the next change. */
  peek(): State {
    return { version: this.#version, ...this.#indexes.peek(), rows: this.#rows }
  }

  /** The present, by regarded object and key. Valid until the next change. */
  peekRegarding(): TreeView {
    return this.#indexes.peekRegarding()
  }

  /** The snapshot at the revision of this version. */
  snapshotAt(version: Version, { isReadOnce = false }: ReaderKind = {}): State | undefined {
    const snapshot = this.#findSnapshot(versionOfState(revisionOf(version)))
    if (snapshot === undefined) return undefined
    snapshot.usedAtMs = this.#clock.now()
    snapshot.isForPages = true
    snapshot.isShared ||= !isReadOnce
    return snapshot
  }

  /** Makes all snapshots unavailable to new readers; none is taken until the next `reach`. */
  forgetStates(): void {
    this.#isWhole = false
    this.namespaces.suspend()
    for (const state of this.#snapshots) state.isForgotten = true
    for (let index = this.#snapshots.length - 1; index >= 0; index--) {
      if (this.#snapshots[index]?.pins === 0) this.#drop(index)
    }
  }

  /** A snapshot of the present for the next page of a reader; undefined while events are loaded. */
  snapshot({ isReadOnce = false }: ReaderKind = {}): State | undefined {
    if (!this.#isWhole) return undefined
    const snapshot = this.#takeSnapshot()
    snapshot.isForPages = true
    snapshot.isShared ||= !isReadOnce
    return snapshot
  }

  /** A reader has read its last page and will not come back. */
  finish(version: Version): void {
    const state = this.#findSnapshot(version)
    if (state === undefined || state.isShared || state.pins > 0) return
    this.#drop(this.#snapshots.indexOf(state))
  }

  /**
   * Protects a state from eviction during a time-sliced read, until the pin is disposed of, and longer
   * if pages may follow. A state that nobody needs makes every change copy parts of the indexes.
   */
  pin(state: State, { isForPages = false, isReadOnce = false }: ReaderKind = {}): Disposable {
    const snapshot = this.#findSnapshot(state.version) ?? this.#takeSnapshot()
    snapshot.pins++
    snapshot.isForPages ||= isForPages
    snapshot.isShared ||= isForPages && !isReadOnce
    return {
      [Symbol.dispose]: () => {
        snapshot.pins--
        const isDone = snapshot.isForgotten || !snapshot.isForPages
        if (snapshot.pins === 0 && isDone) this.#drop(this.#snapshots.indexOf(snapshot))
        this.#trim()
      },
    }
  }

  #findSnapshot(version: Version): Snapshot | undefined {
    return this.#snapshots.find((state) => state.version === version && !state.isForgotten)
  }

  #takeSnapshot(): Snapshot {
    const known = this.#findSnapshot(this.#version)
    if (known !== undefined) return known
    const state: Snapshot = {
      version: this.#version,
      ...this.#indexes.view(),
      usedAtMs: this.#clock.now(),
      bytesCopiedBefore: this.#indexes.bytesCopied,
      retired: [],
      retiredBytes: 0,
      pins: 0,
      isForPages: false,
      isShared: false,
      isForgotten: !this.#isWhole,
    }
    this.#snapshots.push(state)
    return state
  }

  /** The row has left the present; it is freed when no snapshot has it any more. */
  #retire(slot: number): void {
    this.#rows.remove(slot)
    const newest = this.#snapshots.at(-1)
    if (newest === undefined || isAfter(this.table.versionOf(slot), newest.version)) {
      this.table.free(slot)
    } else {
      newest.retired.push(slot)
      newest.retiredBytes += this.table.bytesOf(slot)
    }
    this.#freeSome()
  }

  #freeSome(): void {
    for (let freed = 0; freed < freedPerChange; freed++) {
      const slot = this.#dead.pop()
      if (slot === undefined) return
      this.table.free(slot)
    }
  }

  #trim(): void {
    const { statesMax, stateAgeMsMax, stateBytesMax } = this.#bounds
    const idleSinceMs = this.#clock.now() - stateAgeMsMax
    // The retained bytes only shrink here.
    let isExcess = true
    for (let index = 0; index < this.#snapshots.length; ) {
      isExcess &&= this.#snapshots.length > statesMax || this.#bytesRetained() > stateBytesMax
      const state = this.#snapshots[index]
      if (state === undefined) return
      const isDue = isExcess || state.usedAtMs < idleSinceMs
      if (isDue && state.pins === 0) this.#drop(index)
      else index++
    }
  }

  /** Hands rows that earlier snapshots have as well to the next older one, which retains them now. */
  #drop(index: number): void {
    const [state] = this.#snapshots.splice(index, 1)
    if (state === undefined) return
    const older = this.#snapshots[index - 1]
    if (older === undefined) {
      for (const slot of state.retired) this.#dead.push(slot)
      return
    }
    for (const slot of state.retired) older.retired.push(slot)
    older.retiredBytes += state.retiredBytes
  }

  /** Tree nodes copied and rows retired since the oldest state was taken. */
  #bytesRetained(): number {
    const oldest = this.#snapshots[0]
    if (oldest === undefined) return 0
    const retired = this.#snapshots.reduce((sum, state) => sum + state.retiredBytes, 0)
    return this.#indexes.bytesCopied - oldest.bytesCopiedBefore + retired
  }
}
