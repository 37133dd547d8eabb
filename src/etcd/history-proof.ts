import { createHash, type Hash } from 'node:crypto'
import { EtcdError } from './errors.ts'
import type { KeyValue, WatchEvent } from './protocol/protocol.ts'

interface Anchor {
  readonly revision: number
  readonly key: Buffer
}

/**
 * Proves that a new stream continues the history delivered so far, and not another history with the
 * same revision numbers: that of an etcd which was restored from a snapshot.
 *
 * The anchor is the newest put whose value no other history can have at the same revision. All
 * changes delivered from the anchor on are hashed. A new stream starts at the anchor, so etcd sends
 * those changes again, and they must have the same hash before any new change is accepted. Two
 * histories with the same anchor are identical up to the anchor; with the same hash they are
 * identical up to the last delivered change, because the hash covers every field of each change.
 */
export class HistoryProof {
  readonly #isUnique: (kv: KeyValue) => boolean
  #anchor: Anchor | undefined
  #known: Hash = createHash('sha256')
  #repeated: Hash | undefined

  /** `isUnique` returns whether a value can be an anchor. */
  constructor(isUnique: (kv: KeyValue) => boolean) {
    this.#isUnique = isUnique
  }

  /** Where a stream must start to be comparable; undefined without an anchor. */
  get revision(): number | undefined {
    return this.#anchor?.revision
  }

  /** Whether the current stream still has to be compared. */
  get isOpen(): boolean {
    return this.#repeated !== undefined
  }

  /** Records delivered changes, in order. */
  note(events: readonly WatchEvent[]): void {
    const index = events.findLastIndex(({ type, kv }) => type === 'put' && this.#isUnique(kv))
    const anchor = events[index]
    if (anchor !== undefined) {
      // A view would retain the whole message.
      this.#anchor = { revision: anchor.kv.modRevision, key: Buffer.from(anchor.kv.key) }
      this.#known = createHash('sha256')
    }
    for (const event of index < 1 ? events : events.slice(index)) this.#add(this.#known, event)
  }

  /** Begins the comparison of a new stream that starts at `revision`. */
  begin(): void {
    this.#repeated = this.#anchor === undefined ? undefined : createHash('sha256')
  }

  /** The new stream sent a change that was delivered before. */
  repeat(event: WatchEvent): void {
    if (this.#repeated !== undefined) this.#add(this.#repeated, event)
  }

  /** The new stream has sent all changes delivered before. Throws when they differ. */
  conclude(): void {
    if (this.#repeated === undefined) return
    const isSame = digest(this.#repeated) === digest(this.#known)
    this.#repeated = undefined
    if (isSame) return
    throw new EtcdError({
      kind: 'other-history',
      message: `the history of etcd after revision ${this.#anchor?.revision} differs from the history that was followed: was etcd restored from a snapshot?`,
    })
  }

  /** The anchor stands for its whole revision, because one transaction made all those changes. */
  #add(hash: Hash, { type, kv }: WatchEvent): void {
    const anchor = this.#anchor
    if (anchor === undefined) return
    if (kv.modRevision === anchor.revision && !kv.key.equals(anchor.key)) return
    const { key, value, modRevision, createRevision, version } = kv
    hash.update(
      `${type} ${modRevision} ${createRevision} ${version} ${key.length} ${value.length}\n`,
    )
    hash.update(key)
    hash.update(value)
  }
}

function digest(hash: Hash): string {
  return hash.copy().digest('hex')
}
