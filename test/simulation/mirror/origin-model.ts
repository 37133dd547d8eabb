/**
 * The events of a simulated origin, and the history of their changes: what an API server and its
 * etcd have. It is the truth that the mirror is compared with.
 *
 * An origin that is restored from a backup begins another incarnation. Versions of different
 * incarnations are never equal here, although the later ones may be lower: so each version names
 * one state, and the checks can tell which incarnation a version is from. The mirror does not know.
 */
import type { Event } from '../../../src/api/event.ts'
import { namespaceNames } from './setting.ts'

/** Versions of an incarnation are its number modulo this: so many incarnations are possible. */
export const versionStride = 16
const versionFirst = 160_000
/** 1 January 2026, as in kernel/process.ts. */
const wallStartMs = 1_767_225_600_000

/** A state of one event. */
export interface OriginState {
  readonly key: number
  readonly uid: string
  readonly version: number
  readonly createdAt: number
  /** When it was written, in true time. */
  readonly at: number
  readonly count: number
}

/** A change in the history of the current incarnation. */
export interface OriginRecord {
  readonly version: number
  readonly key: number
  /** The new state; for a delete the last one. */
  readonly state: OriginState
  readonly kind: 'put' | 'delete' | 'expiry'
  readonly at: number
  readonly before: OriginRecord | undefined
  /** The next change of the same event. */
  next: OriginRecord | undefined
}

interface Names {
  readonly namespace: string
  readonly name: string
}

export interface OriginBackup {
  readonly version: number
}

export class OriginModel {
  readonly keys: number
  readonly #perNamespace: number
  readonly #texts: readonly Names[]
  readonly #byPath = new Map<string, number>()
  /** The last change of each event. */
  readonly last: (OriginRecord | undefined)[]
  /** The history of this incarnation, also what an origin would have compacted. */
  readonly log: OriginRecord[] = []
  /** Every state that ever was, by its version. */
  readonly states: Map<number, OriginState> = new Map()
  version: number = versionFirst
  /** Watches and lists from before this version get 410. */
  compacted: number = versionFirst
  incarnation = 0
  /** The version at which this incarnation began. */
  restoredTo: number = versionFirst
  /** The versions to which the origin was restored. */
  readonly #restores: number[] = []
  writes = 0
  expiries = 0
  #uids = 0

  constructor(keys: number) {
    this.#perNamespace = Math.ceil(keys / namespaceNames.length)
    this.keys = this.#perNamespace * namespaceNames.length
    this.last = new Array<OriginRecord | undefined>(this.keys).fill(undefined)
    this.#texts = Array.from({ length: this.keys }, (_, key) => ({
      namespace: namespaceNames[Math.floor(key / this.#perNamespace)] as string,
      name: `pod-${String(key).padStart(5, '0')}.17a0`,
    }))
    for (const [key, { namespace, name }] of this.#texts.entries()) {
      this.#byPath.set(`${namespace}/${name}`, key)
    }
  }

  keyOf(path: string): number | undefined {
    return this.#byPath.get(path)
  }

  pathOf(key: number): string {
    const { namespace, name } = this.#texts[key] as Names
    return `${namespace}/${name}`
  }

  /** The keys of a namespace, in order: from the first to before the second. */
  rangeOf(namespace: string | undefined): readonly [number, number] {
    if (namespace === undefined) return [0, this.keys]
    const index = (namespaceNames as readonly string[]).indexOf(namespace)
    return [index * this.#perNamespace, (index + 1) * this.#perNamespace]
  }

  current(key: number): OriginState | undefined {
    const record = this.last[key]
    return record?.kind === 'put' ? record.state : undefined
  }

  put(key: number, at: number): void {
    const old = this.current(key)
    const version = this.#nextVersion()
    const state: OriginState = {
      key,
      uid:
        old?.uid ??
        `${(++this.#uids).toString(16).padStart(8, '0')}-e0e0-4000-8000-0000000000${10 + this.incarnation}`,
      version,
      createdAt: old?.createdAt ?? at,
      at,
      count: (old?.count ?? 0) + 1,
    }
    this.states.set(version, state)
    this.writes++
    this.#append({ version, key, state, kind: 'put', at, before: this.last[key], next: undefined })
  }

  remove(key: number, at: number, kind: 'delete' | 'expiry'): void {
    const state = this.current(key)
    if (state === undefined) return
    if (kind === 'delete') this.writes++
    else this.expiries++
    const version = this.#nextVersion()
    this.#append({ version, key, state, kind, at, before: this.last[key], next: undefined })
  }

  /** Deletes what was not written for so long. */
  expire(now: number, ttlMs: number): void {
    for (let key = 0; key < this.keys; key++) {
      const state = this.current(key)
      if (state !== undefined && now - state.at > ttlMs) this.remove(key, now, 'expiry')
    }
  }

  /** Compacts the history, except for the last changes. */
  forgetOld(most: number): void {
    const oldest = this.log[this.log.length - most]
    if (oldest !== undefined && oldest.version > this.compacted) this.compacted = oldest.version
  }

  /** The index of the first change after the version. */
  indexAfter(version: number): number {
    let low = 0
    let high = this.log.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.log[middle] as OriginRecord).version > version) high = middle
      else low = middle + 1
    }
    return low
  }

  backup(): OriginBackup {
    return { version: this.version }
  }

  /** Undoes everything after the backup, as a restore of the origin's etcd does. */
  restore({ version }: OriginBackup): void {
    const kept = this.indexAfter(version)
    for (let index = this.log.length - 1; index >= kept; index--) {
      const { key, before } = this.log[index] as OriginRecord
      this.last[key] = before
      if (before !== undefined) before.next = undefined
    }
    this.log.length = kept
    this.incarnation++
    this.version = version
    this.restoredTo = version
    this.#restores.push(version)
    this.compacted = Math.min(this.compacted, version)
  }

  /** Returns whether this version belongs to the current history, and no restore has undone it. */
  isCurrent(version: number): boolean {
    const undone = this.#restores.slice(version % versionStride)
    return version <= this.version && undone.every((restoredTo) => version <= restoredTo)
  }

  eventOf(state: OriginState): Event {
    const { namespace, name } = this.#texts[state.key] as Names
    const time = timeText(state.at)
    return {
      metadata: {
        name,
        namespace,
        uid: state.uid,
        creationTimestamp: timeText(state.createdAt),
        resourceVersion: String(state.version),
        // These times distinguish an expiry from a delete.
        managedFields: [{ manager: 'kubelet', operation: 'Update', time }],
      },
      reason: 'BackOff',
      regarding: { kind: 'Pod', namespace, name },
      note: `restarted ${state.count} times, at version ${state.version}`,
      type: 'Warning',
      deprecatedSource: { component: 'kubelet', host: 'node-1' },
      deprecatedFirstTimestamp: timeText(state.createdAt),
      deprecatedLastTimestamp: time,
      deprecatedCount: state.count,
    }
  }

  #nextVersion(): number {
    const base = this.version - (this.version % versionStride) + versionStride
    this.version = base + this.incarnation
    return this.version
  }

  #append(record: OriginRecord): void {
    const { before, key } = record
    if (before !== undefined) before.next = record
    this.last[key] = record
    this.log.push(record)
  }
}

function timeText(at: number): string {
  return `${new Date(wallStartMs + at).toISOString().slice(0, 19)}Z`
}
