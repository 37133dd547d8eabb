/**
 * Follows the simulated etcd: all commits, compactions and restores, as the truth that everything
 * else is compared with.
 */
import type { Change, Commit, EtcdState } from './commit.ts'
import { CommitReader } from './commit-reader.ts'
import { type ChangeRecord, isSame, Lineage } from './lineage.ts'
import { openText, versionOf } from './stored-text.ts'

/** Commits are remembered with their times for this long at least. */
const timesMsMin = 15 * 60_000

export interface TruthOptions {
  /** The state of the cluster after a restore. */
  readonly state: () => EtcdState
  readonly compactedRevision: () => number
  readonly now: () => number
  readonly onProblem: (guarantee: string, what: string, evidence?: readonly string[]) => void
}

export interface TruthListener {
  /** Called before the change is appended: `before` is set, the lineage has the state before it. */
  onChange(record: ChangeRecord): void
  /** Other keys: control keys and the mark. */
  onOtherKey(change: Change, commit: Commit): void
}

export class Truth {
  readonly #options: TruthOptions
  readonly #reader: CommitReader
  readonly #listeners: TruthListener[] = []
  /** Times of commits by revision, oldest first. */
  #times: { readonly revision: number; readonly at: number }[] = []
  #timesStart = 0
  /** An empty etcd is at revision 1. */
  #current: Lineage = new Lineage({ epoch: 0, base: 1, kept: 1 })
  /** Newest first. */
  #past: Lineage[] = []
  /** A restore whose state has not been read yet. */
  #restored: { readonly kept: number; readonly revision: number; readonly at: number } | undefined
  compacted = 0
  restores = 0

  constructor(options: TruthOptions) {
    this.#options = options
    this.#reader = new CommitReader(({ guarantee, what }) => options.onProblem(guarantee, what))
  }

  listen(listener: TruthListener): void {
    this.#listeners.push(listener)
  }

  get current(): Lineage {
    if (this.#restored !== undefined) this.#fork()
    return this.#current
  }

  get epoch(): number {
    return this.current.epoch
  }

  get newest(): number {
    return this.current.newest
  }

  get past(): readonly Lineage[] {
    if (this.#restored !== undefined) this.#fork()
    return this.#past
  }

  lineage(epoch: number): Lineage | undefined {
    const { current } = this
    return epoch === current.epoch ? current : this.#past.find((one) => one.epoch === epoch)
  }

  /** The last revision that two lineages share. */
  sharedUntil(epoch: number, other: number): number {
    let shared = Number.POSITIVE_INFINITY
    for (const lineage of [this.current, ...this.#past]) {
      if (lineage.epoch <= Math.min(epoch, other) || lineage.epoch > Math.max(epoch, other))
        continue
      shared = Math.min(shared, lineage.kept)
    }
    return shared
  }

  onCommit(commit: Commit): void {
    const lineage = this.current
    const { revision, at } = commit
    if (revision <= lineage.newest) {
      const what = `revision ${revision} was committed after revision ${lineage.newest}`
      this.#options.onProblem('simulated etcd', what)
    }
    const records = this.#reader.records(commit)
    for (const record of records) {
      const before = lineage.head(record.path)
      record.before = before
      for (const listener of this.#listeners) listener.onChange(record)
      lineage.append(record)
    }
    lineage.newest = revision
    this.#times.push({ revision, at })
    if (records.length < commit.changes.length) this.#reportOtherKeys(commit)
  }

  #reportOtherKeys(commit: Commit): void {
    for (const change of commit.changes) {
      if (this.#reader.pathOf(change.key) !== undefined) continue
      for (const listener of this.#listeners) listener.onOtherKey(change, commit)
    }
  }

  onCompact(revision: number): void {
    this.compacted = Math.max(this.compacted, revision)
  }

  onRestore(restore: {
    readonly kept: number
    readonly revision: number
    readonly at: number
  }): void {
    if (this.#restored !== undefined) this.#fork()
    this.#restored = restore
    this.restores++
  }

  /** The newest revision at a time; undefined when it is not remembered that far back. */
  revisionAt(time: number): number | undefined {
    const index = this.#timeIndex((entry) => entry.at > time)
    return index === this.#timesStart ? undefined : this.#times[index - 1]?.revision
  }

  /** When a revision was committed; undefined when that is not remembered. */
  committedAt(revision: number): number | undefined {
    const index = this.#timeIndex((entry) => entry.revision >= revision)
    const found = this.#times[index]
    return found?.revision === revision ? found.at : undefined
  }

  /** Forgets what no check needs any more; `floor` is the oldest revision of the current epoch. */
  forget(floor: number): void {
    this.current.forget(floor)
    const before = this.#options.now() - timesMsMin
    this.#timesStart = this.#timeIndex((entry) => entry.at >= before)
    if (this.#timesStart < 4_096) return
    this.#times = this.#times.slice(this.#timesStart)
    this.#timesStart = 0
  }

  /** No replica, watch or operation of an earlier epoch is left. */
  forgetPast(): void {
    if (this.past.length > 0) this.#past = []
  }

  #timeIndex(matches: (entry: { readonly revision: number; readonly at: number }) => boolean) {
    let low = this.#timesStart
    let high = this.#times.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#times[middle]
      if (entry !== undefined && matches(entry)) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Begins a lineage with the restored state. Records of the shared history are the same. */
  #fork(): void {
    const restored = this.#restored
    if (restored === undefined) return
    this.#restored = undefined
    const old = this.#current
    const { kept, revision } = restored
    const next = new Lineage({ epoch: old.epoch + 1, base: revision, kept })
    for (const record of old.changesUpTo(kept)) next.append(record)
    if (old.horizon <= kept) next.horizon = old.horizon
    for (const [key, change] of this.#options.state()) {
      const path = this.#reader.pathOf(Buffer.from(key, 'latin1'))
      if (path !== undefined) this.#placeRestored(next, path, { change, old })
    }
    this.#times = this.#times.slice(this.#timesStart).filter((entry) => entry.revision <= kept)
    this.#timesStart = 0
    this.compacted = this.#options.compactedRevision()
    this.#past = [old, ...this.#past].slice(0, 3)
    this.#current = next
  }

  #placeRestored(
    next: Lineage,
    path: string,
    from: { readonly change: Change & { readonly modRevision: number }; readonly old: Lineage },
  ): void {
    const { change, old } = from
    const text = openText(change.value)
    if (text === undefined) return
    const { bodyStart, writtenAtMs, index, operation, facet } = text
    const body = change.value.subarray(bodyStart)
    const version = versionOf(change.modRevision, index)
    if (next.head(path)?.version === version) return
    const known = old.find(path, version)
    if (known !== undefined && isSame(known, { version, body })) {
      next.place(known)
      return
    }
    next.place({
      path,
      namespace: path.slice(0, path.indexOf('/')),
      version,
      revision: change.modRevision,
      at: this.committedAt(change.modRevision) ?? Number.NEGATIVE_INFINITY,
      isDelete: false,
      body,
      writtenAtMs,
      operation,
      facet,
      before: undefined,
    })
  }
}
