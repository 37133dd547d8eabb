/**
 * Compacts the history of etcd, once per interval among all replicas.
 *
 * A compaction removes what was already history one interval ago, so watchers and paged lists have at
 * least one interval to catch up. Each replica takes that revision from its own timeline; a replica
 * that has not been up for an interval does not know it yet and does not compact.
 *
 * Each compaction is announced in a key first. The timeline shows whether an interval has passed since
 * the revision of the announcement: no two clocks are compared, and a change of leader neither skips
 * nor repeats a compaction. If a replica stops between the two steps, the next interval makes up for
 * it. etcd itself refuses to compact backwards.
 *
 * A full etcd rejects the announcement but needs the compaction most. It is then compacted without an
 * announcement, still only once per interval by each replica.
 */

import type { KnownHistory } from '../election/known-history.ts'
import type { Term } from '../election/term.ts'
import type { CallOptions, ConnectionNumber, EtcdClient, Txn } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { type KeyRange, markValue } from '../storage/etcd/keys.ts'
import { isAfter, revisionOf, type Version } from '../storage/resource-version.ts'
import type { Timeline } from './timeline.ts'

const checksPerInterval = 20
const checkEveryMsMin = 100
const checkEveryMsMax = 10_000

export interface CompactorOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn' | 'compact'>
  /** The key of the announcements. */
  readonly key: string
  /** The leader's key: only the leader announces. */
  readonly leaderKey: string
  readonly replica: string
  /** Key ranges of other programs, whose history compaction removes as well. */
  readonly foreign?: readonly KeyRange[] | undefined
  /** Key of the mark that identifies a history. */
  readonly markKey?: Buffer | undefined
  /** Without it, every connection counts as leading to the timeline's history. */
  readonly history?: KnownHistory | undefined
  readonly intervalMs: number
  /** Changes after this version are still needed. Undefined: none are. */
  readonly neededAfter?: (() => Version | undefined) | undefined
  readonly timeline: Pick<Timeline, 'versionAt'>
  readonly clock: Clock
  readonly log: Log
}

export class Compactor {
  readonly #options: CompactorOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  /** Revision of the last announcement of any replica that this one knows of. */
  #announcedAt = 0
  /** Revision of etcd at this replica's last compaction without an announcement. */
  #unannouncedAt = 0
  /** Revision of etcd when the announcement was last read. */
  #announcementReadAt = 0
  /** Target of a compaction that may proceed but is not done. */
  #pending: number | undefined
  #count = 0
  #compactedRevision = 0
  #hasCheckedForeignKeys = false

  constructor(options: CompactorOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#leaderKey = Buffer.from(options.leaderKey)
  }

  /** Number of compactions by this replica. */
  get count(): number {
    return this.#count
  }

  /** Revision of this replica's last compaction; 0 before the first. */
  get compactedRevision(): number {
    return this.#compactedRevision
  }

  /** Discards what is known of announcements, which may belong to another history. */
  forget(): void {
    this.#announcedAt = 0
    this.#unannouncedAt = 0
    this.#pending = undefined
  }

  /** Compacts periodically until the term is over. Rejects only on a bug. */
  async run(term: Term): Promise<void> {
    const { intervalMs, log } = this.#options
    const everyMs = Math.min(
      checkEveryMsMax,
      Math.max(checkEveryMsMin, intervalMs / checksPerInterval),
    )
    this.#pending = undefined
    this.#announcedAt = 0
    while (term.isHeld()) {
      try {
        await this.#checkForeignKeys(term)
        await this.#compactIfDue(term)
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        if (error.kind === 'outdated') this.#options.history?.verify()
        if (!term.signal.aborted) log.warn('Compaction failed; will retry', { err: error })
      }
      await pause(everyMs, term.signal)
    }
  }

  /** Warns once about other programs in this etcd, an interval before the first compaction. */
  async #checkForeignKeys({ signal }: Term): Promise<void> {
    if (this.#hasCheckedForeignKeys) return
    const { client, foreign = [], log, intervalMs } = this.#options
    for (const range of foreign) {
      const { kvs } = await client.range({ ...range, limit: 1, keysOnly: true }, { signal })
      const [found] = kvs
      if (found === undefined) continue
      log.warn('Other programs store keys in this etcd; compaction removes their history too', {
        etcdKey: found.key.toString(),
        intervalSeconds: intervalMs / 1000,
        remedy: '--etcd-compaction-interval=0 leaves compaction to etcd or to another program',
      })
      break
    }
    this.#hasCheckedForeignKeys = true
  }

  async #compactIfDue(term: Term): Promise<void> {
    // Read at the same time as the target.
    const connectionMax = this.#options.history?.verified()
    if (connectionMax === 0) return
    const target = this.#target()
    // If nothing was written after the announcement, there is nothing to compact.
    if (this.#pending === undefined && target > this.#lastAt && (await this.#isDue(target, term))) {
      await this.#announce(target, term, connectionMax)
    }
    if (this.#pending === undefined || !term.isHeld()) return
    await this.#compact(this.#pending, { signal: term.signal, connectionMax })
  }

  /** 0 when it is not known. */
  #target(): number {
    const { timeline, clock, intervalMs, neededAfter } = this.#options
    const version = timeline.versionAt(clock.now() - intervalMs)
    if (version === undefined) return 0
    return revisionOf(earlier(version, neededAfter?.() ?? version))
  }

  /** Whether no replica has announced a compaction within the interval. */
  async #isDue(target: number, term: Term): Promise<boolean> {
    const { client } = this.#options
    const { kvs, revision } = await client.range({ key: this.#key }, { signal: term.signal })
    this.#announcementReadAt = revision
    this.#announcedAt = kvs[0]?.modRevision ?? 0
    return target > this.#lastAt && term.isHeld()
  }

  get #lastAt(): number {
    return Math.max(this.#announcedAt, this.#unannouncedAt)
  }

  async #announce(
    target: number,
    term: Term,
    connectionMax: ConnectionNumber | undefined,
  ): Promise<void> {
    try {
      await this.#announceOrFail(target, term, connectionMax)
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== 'no-space') throw error
      this.#unannouncedAt = this.#announcementReadAt
      this.#pending = target
    }
  }

  async #announceOrFail(
    target: number,
    term: Term,
    connectionMax: ConnectionNumber | undefined,
  ): Promise<void> {
    const { client, replica, markKey } = this.#options
    const txn: Txn = {
      compare: [
        { key: this.#key, target: 'modRevision', to: this.#announcedAt },
        { key: this.#leaderKey, target: 'modRevision', to: term.revision },
      ],
      success: [
        {
          type: 'put',
          key: this.#key,
          value: Buffer.from(JSON.stringify({ replica, compactedRevision: target })),
        },
        // Replicas recognise the history by a revision that is not compacted. In a quiet cluster
        // nothing else may have been written for longer than an interval.
        ...(markKey === undefined
          ? []
          : [{ type: 'put' as const, key: markKey, value: markValue() }]),
      ],
    }
    const { succeeded, revision } = await client.txn(txn, { connectionMax })
    if (!succeeded || !term.isHeld()) return
    this.#announcedAt = revision
    this.#pending = target
  }

  async #compact(revision: number, options: CallOptions): Promise<void> {
    const { client, log } = this.#options
    try {
      await client.compact(revision, options)
      this.#count++
      this.#compactedRevision = revision
      log.info('Compacted the history in etcd', { revision })
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      const { kind } = error
      // Already compacted further, or restored: either way nothing is left to do.
      if (kind !== 'compacted' && kind !== 'future-revision') throw error
    }
    this.#pending = undefined
  }
}

function earlier(one: Version, other: Version): Version {
  return isAfter(one, other) ? other : one
}
