import type { EtcdClient } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { clusterOfMirrorKey, mirrorRange } from '../storage/etcd/keys.ts'
import { decodeRecord, type MirrorRecordContent } from './mirror-record.ts'
import type { StreamState } from './stream-health.ts'

const readEveryMsUsual = 2_000
const callTimeoutMs = 5_000
/** Three heartbeats: see cluster-mirror.ts. */
const silentAfterMs = 30_000
/** Bounds one read; far more than the clusters of any installation. */
const recordsMax = 10_000

export type MirrorState = 'Waiting' | StreamState

/** The state of a cluster's mirror, whichever replica runs it. */
export interface MirrorStatus {
  /** `Waiting` until a replica has reported while this one is running. */
  readonly state: MirrorState
  readonly message: string
  /** How far the stored events lag behind the origin; undefined when unknown. */
  readonly lagMs: number | undefined
  /** When an event was last stored, in milliseconds since 1970. */
  readonly lastEventAtMs: number | undefined
  /** Whether a list has completed, of each namespace if only some are mirrored. */
  readonly hasSynced: boolean
  /** The replica that mirrors the cluster. */
  readonly replica: string | undefined
  readonly epoch: number
  /** Events dropped since that replica started, keyed by reason. */
  readonly dropped: Readonly<Record<string, number>>
}

export interface MirrorStatusesOptions {
  readonly client: Pick<EtcdClient, 'range'>
  readonly prefix: string
  /** The streams of the mirror of a cluster; undefined when it is not mirrored. */
  readonly streamsOf: (cluster: string) => readonly string[] | undefined
  readonly clock: Clock
  readonly log: Log
  readonly readEveryMs?: number | undefined
}

interface Seen {
  readonly modRevision: number
  /** Undefined for a value that is not a record. */
  readonly content: (MirrorRecordContent & { readonly replica: string }) | undefined
  /** When this replica first saw this revision, by its clock. */
  readonly at: number
  /** For how long this replica has seen no later revision, without the time of failed reads. */
  readonly silentMs: number
  /** Whether it was written while this replica is running, and not some time before. */
  readonly isNews: boolean
}

const waiting: MirrorStatus = {
  state: 'Waiting',
  message: 'no replica has mirrored this cluster yet',
  lagMs: undefined,
  lastEventAtMs: undefined,
  hasSynced: false,
  replica: undefined,
  epoch: 0,
  dropped: {},
}

/** Polls the records of all mirrors; every replica runs one. */
export class MirrorStatuses {
  readonly #options: MirrorStatusesOptions
  readonly #readEveryMs: number
  #seen: ReadonlyMap<string, Seen> = new Map()
  /** When the last read succeeded. */
  #readAt: number | undefined

  constructor(options: MirrorStatusesOptions) {
    this.#options = options
    this.#readEveryMs = options.readEveryMs ?? readEveryMsUsual
  }

  get(cluster: string): MirrorStatus {
    const { clock, streamsOf } = this.#options
    if (this.#readAt === undefined) return { ...waiting, message: 'etcd has not been read yet' }
    const seen = this.#seen.get(cluster)
    if (seen?.content === undefined) return waiting
    const { positions, ...recorded } = seen.content
    const hasSynced = streamsOf(cluster)?.every((stream) => Object.hasOwn(positions, stream))
    const status = { ...waiting, ...recorded, hasSynced: hasSynced ?? false }
    const now = clock.now()
    const lagMs = recorded.lagMs + now - seen.at
    if (seen.silentMs >= silentAfterMs) {
      const message = `no replica has reported for ${seconds(seen.silentMs)} s`
      return { ...status, state: 'Stalled', message, lagMs }
    }
    if (!seen.isNews) {
      const message = 'no replica has reported since this one started'
      return { ...status, state: 'Waiting', message, lagMs: undefined }
    }
    const unreadMs = now - this.#readAt
    if (unreadMs >= silentAfterMs) {
      const message = `this replica has not been able to read etcd for ${seconds(unreadMs)} s`
      return { ...status, message, lagMs }
    }
    // Reports are seconds apart: the time since the last one is not a lag.
    return recorded.state === 'Following' ? status : { ...status, lagMs }
  }

  /** Reads until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#read(signal)
      await pause(this.#readEveryMs, signal)
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock, log, prefix } = this.#options
    try {
      const range = { ...mirrorRange(prefix), limit: recordsMax }
      const { kvs } = await client.range(range, { signal, timeoutMs: callTimeoutMs })
      const at = clock.now()
      const before = this.#seen
      const isNews = this.#readAt !== undefined
      // Any longer, and reads have failed in between.
      const passedMs = Math.min(at - (this.#readAt ?? at), this.#readEveryMs + callTimeoutMs)
      this.#seen = new Map(
        kvs.map(({ key, value, modRevision }) => {
          const cluster = clusterOfMirrorKey(prefix, key)
          const known = before.get(cluster)
          if (known?.modRevision === modRevision) {
            return [cluster, { ...known, silentMs: known.silentMs + passedMs }]
          }
          return [cluster, { modRevision, content: decodeRecord(value), at, silentMs: 0, isNews }]
        }),
      )
      this.#readAt = at
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!signal.aborted) log.v(2, 'Could not read the mirror records; will retry', { err: error })
    }
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
