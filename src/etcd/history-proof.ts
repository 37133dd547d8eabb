import { createHash, type Hash } from 'node:crypto'
import { EtcdError } from './errors.ts'
import type { KeyValue, WatchEvent } from './protocol.ts'

interface Anchor {
  readonly revision: number
  readonly key: Buffer
}

/**
 * Proves that a stream goes on in the history that was delivered so far, and not in another one that
 * has the same revision numbers: that of an etcd which was restored from a snapshot.
 *
 * The anchor is the newest put whose value no other history can have at the same revision. Everything
 * delivered from the anchor on goes into a digest. A new stream starts at the anchor, so what was
 * delivered comes again, and must give the same digest before anything new is taken. Two histories
 * with the same anchor are the same up to there, and with the same digest up to what was delivered:
 * what follows the anchor is in the digest with all that etcd tells of it.
 */
export class HistoryProof {
  readonly #isUnique: (kv: KeyValue) => boolean
  #anchor: Anchor | undefined
  #known: Hash = createHash('sha256')
  #repeated: Hash | undefined

  /** `isUnique` says whether a value can be an anchor. */
  constructor(isUnique: (kv: KeyValue) => boolean) {
    this.#isUnique = isUnique
  }

  /** Where a stream must start to be comparable; undefined when nothing is known to compare with. */
  get revision(): number | undefined {
    return this.#anchor?.revision
  }

  /** Whether a stream that has begun is still to be compared. */
  get isOpen(): boolean {
    return this.#repeated !== undefined
  }

  /** These were delivered, in order. */
  note(events: readonly WatchEvent[]): void {
    const index = events.findLastIndex(({ type, kv }) => type === 'put' && this.#isUnique(kv))
    const anchor = events[index]
    if (anchor !== undefined) {
      // A view into the message would keep all of it.
      this.#anchor = { revision: anchor.kv.modRevision, key: Buffer.from(anchor.kv.key) }
      this.#known = createHash('sha256')
    }
    for (const event of index < 1 ? events : events.slice(index)) this.#add(this.#known, event)
  }

  /** A stream begins that starts at `revision`. */
  begin(): void {
    this.#repeated = this.#anchor === undefined ? undefined : createHash('sha256')
  }

  /** The stream told of this, which was due before. */
  repeat(event: WatchEvent): void {
    if (this.#repeated !== undefined) this.#add(this.#repeated, event)
  }

  /** The stream has told of all that was delivered before. Throws when that was something else. */
  conclude(): void {
    if (this.#repeated === undefined) return
    const isSame = digest(this.#repeated) === digest(this.#known)
    this.#repeated = undefined
    if (isSame) return
    throw new EtcdError({
      kind: 'other-history',
      message: `the history of etcd after revision ${this.#anchor?.revision} is not the one that was followed: was it restored from a snapshot?`,
    })
  }

  /** Of the revision of the anchor the anchor alone counts: one transaction made all of it. */
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
