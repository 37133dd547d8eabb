/**
 * Makes etcd forget its history, once per interval among all replicas.
 *
 * What it forgets is what was history one interval ago already, so watchers and pages of lists have
 * at least one interval to catch up. Which revision that was, each replica knows from its own
 * timeline; one that has not been up for an interval does not know it yet and leaves things alone.
 *
 * Each compaction is announced in a key before it is made. The revision of the announcement tells,
 * against the timeline, whether an interval has passed since: no clock is compared with another's,
 * and a change of leaders neither skips nor doubles a compaction. Should we be stopped between the
 * two steps, the next interval makes up for it. etcd itself refuses to go back.
 *
 * An etcd that is full takes no announcement, and needs the compaction most: it is then made without
 * one. Each replica that sees to it still does so once per interval only.
 */
import type { CallOptions, ConnectionNumber, EtcdClient, Txn } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type KeyRange, markValue } from '../storage/keys.ts'
import { revisionOf } from '../storage/resource-version.ts'
import type { KnownHistory } from './known-history.ts'
import type { Term } from './leadership.ts'
import type { Timeline } from './timeline.ts'

const looksPerInterval = 20
const lookEveryMsMin = 100
const lookEveryMsMax = 10_000

export interface CompactorOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn' | 'compact'>
  /** Where compactions are announced. */
  readonly key: string
  /** That of the leader: announcements are made under its term only. */
  readonly leaderKey: string
  readonly replica: string
  /** Where keys of other programs would be: a compaction concerns them too. */
  readonly foreign?: readonly KeyRange[] | undefined
  /** Of the mark by which histories are recognised. */
  readonly markKey?: Buffer | undefined
  /** Without one, every connection leads to the history that the timeline is about. */
  readonly history?: KnownHistory | undefined
  readonly intervalMs: number
  readonly timeline: Pick<Timeline, 'versionAt'>
  readonly clock: Clock
  readonly log: Log
}

export class Compactor {
  readonly #options: CompactorOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  /** Of the last announcement anybody made, as far as we know. */
  #announcedAt = 0
  /** How far etcd was when we last went without an announcement. */
  #unannouncedAt = 0
  /** How far it was when we last asked whether there is an announcement. */
  #askedAt = 0
  /** Announced by us, or not to be announced, and not made yet. */
  #owed: number | undefined
  #count = 0
  #compactedRevision = 0
  #hasLookedForOthers = false

  constructor(options: CompactorOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#leaderKey = Buffer.from(options.leaderKey)
  }

  /** How many compactions this replica has made. */
  get count(): number {
    return this.#count
  }

  /** The oldest revision that its last compaction left; 0 before the first. */
  get compactedRevision(): number {
    return this.#compactedRevision
  }

  /** What is known of announcements may be about another history than the one that etcd is in. */
  forget(): void {
    this.#announcedAt = 0
    this.#unannouncedAt = 0
    this.#owed = undefined
  }

  /** Looks after the history until the term is over. Rejects on a bug only. */
  async run(term: Term): Promise<void> {
    const { intervalMs, log } = this.#options
    const everyMs = Math.min(
      lookEveryMsMax,
      Math.max(lookEveryMsMin, intervalMs / looksPerInterval),
    )
    this.#owed = undefined
    this.#announcedAt = 0
    while (term.isHeld()) {
      try {
        await this.#lookForOthers(term)
        await this.#look(term)
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        if (error.kind === 'outdated') this.#options.history?.verify()
        if (!term.signal.aborted) log.warn('Cannot compact now', { err: error })
      }
      await pause(everyMs, term.signal)
    }
  }

  /** Tells once of other programs in this etcd, an interval before the first compaction. */
  async #lookForOthers({ signal }: Term): Promise<void> {
    if (this.#hasLookedForOthers) return
    const { client, foreign = [], log, intervalMs } = this.#options
    for (const range of foreign) {
      const { kvs } = await client.range({ ...range, limit: 1, keysOnly: true }, { signal })
      const [found] = kvs
      if (found === undefined) continue
      log.warn('Other programs keep keys in this etcd, and compactions remove their history too', {
        etcdKey: found.key.toString(),
        intervalSeconds: intervalMs / 1000,
        remedy: '--etcd-compaction-interval=0 leaves compaction to etcd or to another program',
      })
      break
    }
    this.#hasLookedForOthers = true
  }

  async #look(term: Term): Promise<void> {
    const { timeline, clock, intervalMs, history } = this.#options
    // Of the same moment as the target.
    const connectionMax = history?.verified()
    if (connectionMax === 0) return
    const version = timeline.versionAt(clock.now() - intervalMs)
    const target = version === undefined ? 0 : revisionOf(version)
    // With nothing but the announcement since, there is nothing to forget.
    if (this.#owed === undefined && target > this.#lastAt && (await this.#isDue(target, term))) {
      await this.#announce(target, term, connectionMax)
    }
    if (this.#owed === undefined || !term.isHeld()) return
    await this.#compact(this.#owed, { signal: term.signal, connectionMax })
  }

  /** Whether nobody has announced one within the interval. */
  async #isDue(target: number, term: Term): Promise<boolean> {
    const { client } = this.#options
    const { kvs, revision } = await client.range({ key: this.#key }, { signal: term.signal })
    this.#askedAt = revision
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
      this.#unannouncedAt = this.#askedAt
      this.#owed = target
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
        // Those who follow need something to recognise the history by that is not forgotten: in a
        // quiet cluster nothing else may have been written for longer than that.
        ...(markKey === undefined
          ? []
          : [{ type: 'put' as const, key: markKey, value: markValue() }]),
      ],
    }
    const { succeeded, revision } = await client.txn(txn, { connectionMax })
    if (!succeeded || !term.isHeld()) return
    this.#announcedAt = revision
    this.#owed = target
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
      // Somebody went further than we wanted to, or set the store back: either way it is done with.
      if (kind !== 'compacted' && kind !== 'future-revision') throw error
    }
    this.#owed = undefined
  }
}
