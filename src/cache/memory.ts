/**
 * All events as of one version, sorted and indexed, and some earlier states of the same that
 * readers have not finished with.
 *
 * An earlier state shares everything with the present but what has changed since. It holds up the
 * release of what it alone still shows, so states are kept in bounded number, for a bounded time,
 * and give way, oldest first, when what they hold up gets too much. Whoever comes back for a state
 * that is gone reads it from the store behind.
 */
import type { Clock } from '../lib/clock.ts'
import {
  beginning,
  isAfter,
  revisionOf,
  type Version,
  versionOfState,
} from '../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../storage/storage.ts'
import { EventTable } from './event-table.ts'
import { hashedFields, hashesOf } from './index-hashes.ts'
import { orderKey, viewOf } from './order-key.ts'
import { RegardedKinds } from './regarded-kinds.ts'
import { SlotTree, type TreeView } from './slot-tree.ts'

export interface MemoryBounds {
  readonly statesMax: number
  readonly stateAgeMsMax: number
  /** What earlier states may hold that the present does not need. */
  readonly stateBytesMax: number
}

/** Pages of one list follow each other within seconds; who takes longer is served by etcd. */
export const defaultMemoryBounds: MemoryBounds = {
  statesMax: 256,
  stateAgeMsMax: 60_000,
  stateBytesMax: 128 * 1024 * 1024,
}

/** Rows freed with each change besides its own: many may fall due at once. */
const freedPerChange = 8

/** Everything at one version. */
export interface State {
  readonly version: Version
  readonly byKey: TreeView
  /** By the order of `hashedFields`; undefined for those without a tree. */
  readonly byField: readonly (TreeView | undefined)[]
}

/** A state that stays. */
interface KeptState extends State {
  readonly takenAtMs: number
  readonly bytesCopiedBefore: number
  /** Rows that this state shows and later ones do not. */
  readonly retired: number[]
  retiredBytes: number
  pins: number
  /** Of what may be another history: for those who read it already, and for nobody else. */
  isForgotten: boolean
}

export class EventMemory {
  readonly table: EventTable = new EventTable()
  readonly kinds: RegardedKinds = new RegardedKinds()
  readonly #bounds: MemoryBounds
  readonly #clock: Clock
  readonly #byKey: SlotTree
  readonly #byField: readonly (SlotTree | undefined)[]
  /** Oldest first. */
  readonly #kept: KeptState[] = []
  readonly #dead: number[] = []
  #version: Version = beginning

  constructor(bounds: MemoryBounds, clock: Clock) {
    this.#bounds = bounds
    this.#clock = clock
    this.#byKey = new SlotTree((slot, other) => this.table.compareKeys(slot, other))
    this.#byField = hashedFields.map(({ hasTree }, field) =>
      hasTree ? new SlotTree((slot, other) => this.#compareHash(slot, other, field)) : undefined,
    )
  }

  get version(): Version {
    return this.#version
  }

  get count(): number {
    return this.#byKey.peek().size
  }

  get statesKept(): number {
    return this.#kept.length
  }

  /** Answers the state before, a view. */
  put(stored: StoredEvent): StoredEvent | undefined {
    const key = orderKey(stored.key)
    const old = this.find(key)
    const slot = this.table.add(key, stored, hashesOf(stored.fields))
    this.kinds.note(stored.fields.regarding)
    if (old === undefined) {
      this.#byKey.insert(slot)
      for (const tree of this.#byField) tree?.insert(slot)
      this.#freeSome()
      return undefined
    }
    const previous = this.table.read(old)
    this.#byKey.replace(old, slot)
    for (const [field, tree] of this.#byField.entries()) {
      if (tree === undefined) continue
      if (this.table.hashOf(old, field) === this.table.hashOf(slot, field)) tree.replace(old, slot)
      else {
        tree.remove(old)
        tree.insert(slot)
      }
    }
    this.#retire(old)
    return previous
  }

  /** Answers the last state, a view; undefined when there is none. */
  delete(key: EventKey): StoredEvent | undefined {
    const slot = this.find(orderKey(key))
    if (slot === undefined) return undefined
    const previous = this.table.read(slot)
    this.remove(slot)
    return previous
  }

  remove(slot: number): void {
    this.#byKey.remove(slot)
    for (const tree of this.#byField) tree?.remove(slot)
    this.#retire(slot)
  }

  /** All changes up to here have been made. */
  reach(version: Version): void {
    this.#version = version
    this.#trim()
  }

  find(key: Buffer): number | undefined {
    const view = viewOf(key)
    return this.#byKey.peek().find((slot) => this.table.compareKey(slot, view))
  }

  /** The present. Good until the next change. */
  peek(): State {
    return {
      version: this.#version,
      byKey: this.#byKey.peek(),
      byField: this.#byField.map((tree) => tree?.peek()),
    }
  }

  /** The kept state that has this version in it and nothing after. */
  keptAt(version: Version): State | undefined {
    const wanted = versionOfState(revisionOf(version))
    return this.#kept.find((state) => state.version === wanted && !state.isForgotten)
  }

  /** No earlier state can be asked for any more. */
  forgetStates(): void {
    for (const state of this.#kept) state.isForgotten = true
    for (let index = this.#kept.length - 1; index >= 0; index--) {
      if (this.#kept[index]?.pins === 0) this.#drop(index)
    }
  }

  /** Keeps the present, so that it can be read at its version for a while. */
  keep(): State {
    return this.#keep()
  }

  /** Keeps a state for a reader who takes several turns, until it is disposed of. */
  pin(state: State): Disposable {
    const isSame = (other: KeptState) => other.version === state.version && !other.isForgotten
    const kept = this.#kept.find(isSame) ?? this.#keep()
    kept.pins++
    return {
      [Symbol.dispose]: () => {
        kept.pins--
        this.#trim()
      },
    }
  }

  #keep(): KeptState {
    const newest = this.#kept.at(-1)
    if (newest?.version === this.#version && !newest.isForgotten) return newest
    const state: KeptState = {
      version: this.#version,
      byKey: this.#byKey.view(),
      byField: this.#byField.map((tree) => tree?.view()),
      takenAtMs: this.#clock.now(),
      bytesCopiedBefore: this.#bytesCopied(),
      retired: [],
      retiredBytes: 0,
      pins: 0,
      isForgotten: false,
    }
    this.#kept.push(state)
    return state
  }

  /** The row is no part of the present any more; it is freed once no state shows it. */
  #retire(slot: number): void {
    const newest = this.#kept.at(-1)
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
    const oldestAtMs = this.#clock.now() - stateAgeMsMax
    let index = 0
    while (index < this.#kept.length) {
      const state = this.#kept[index]
      if (state === undefined) return
      const isDue =
        state.takenAtMs < oldestAtMs ||
        this.#kept.length > statesMax ||
        this.#bytesHeldUp() > stateBytesMax
      if (!isDue) return
      if (state.pins > 0) index++
      else this.#drop(index)
    }
  }

  /** What only this state and earlier ones show is held up by those alone from here on. */
  #drop(index: number): void {
    const [state] = this.#kept.splice(index, 1)
    if (state === undefined) return
    const older = this.#kept[index - 1]
    if (older === undefined) {
      for (const slot of state.retired) this.#dead.push(slot)
      return
    }
    for (const slot of state.retired) older.retired.push(slot)
    older.retiredBytes += state.retiredBytes
  }

  /** Nodes copied and rows retired since the oldest state was taken. */
  #bytesHeldUp(): number {
    const oldest = this.#kept[0]
    if (oldest === undefined) return 0
    const retired = this.#kept.reduce((sum, state) => sum + state.retiredBytes, 0)
    return this.#bytesCopied() - oldest.bytesCopiedBefore + retired
  }

  #bytesCopied(): number {
    let bytes = this.#byKey.bytesCopied
    for (const tree of this.#byField) bytes += tree?.bytesCopied ?? 0
    return bytes
  }

  #compareHash(slot: number, other: number, field: number): number {
    const { table } = this
    const difference = table.hashOf(slot, field) - table.hashOf(other, field)
    if (difference !== 0) return difference
    return table.compareKeys(slot, other)
  }
}
