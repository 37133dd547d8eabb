import type { EtcdClient } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { clusterOfMirrorKey, mirrorRange } from '../storage/etcd/keys.ts'
import { decodeRecord, type MirrorRecordContent } from './mirror-record.ts'
import type { StreamState } from './stream-health.ts'

const readEveryMs = 2_000
const callTimeoutMs = 5_000
/** Three heartbeats: see cluster-mirror.ts. */
const silentAfterMs = 30_000
/** Bounds one read; far more than the clusters of any installation. */
const recordsMax = 10_000

export type MirrorState = 'Waiting' | StreamState

/** The state of a cluster's mirror, whichever replica runs it. */
export interface MirrorStatus {
  /** `Waiting` until a replica has mirrored the cluster. */
  readonly state: MirrorState
  readonly message: string
  /** How far the stored events lag behind the origin; undefined when unknown. */
  readonly lagMs: number | undefined
  /** When an event was last stored, in milliseconds since 1970. */
  readonly lastEventAtMs: number | undefined
  /** Whether a list has completed, of at least one namespace if only some are mirrored. */
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
  readonly clock: Clock
  readonly log: Log
}

interface Seen {
  readonly modRevision: number
  /** Undefined for a value that is not a record. */
  readonly content: (MirrorRecordContent & { readonly replica: string }) | undefined
  /** When this replica first saw this revision, by its clock. */
  readonly at: number
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
  #seen: ReadonlyMap<string, Seen> = new Map()

  constructor(options: MirrorStatusesOptions) {
    this.#options = options
  }

  get(cluster: string): MirrorStatus {
    const seen = this.#seen.get(cluster)
    if (seen?.content === undefined) return waiting
    const { lagMs, positions, ...recorded } = seen.content
    const content = { ...recorded, hasSynced: Object.keys(positions).length > 0 }
    const silentMs = this.#options.clock.now() - seen.at
    if (silentMs < silentAfterMs) return { ...waiting, ...content, lagMs: lagMs + silentMs }
    const seconds = Math.floor(silentMs / 1000)
    const message = `no replica has reported for ${seconds} s`
    return { ...waiting, ...content, state: 'Stalled', message, lagMs: lagMs + silentMs }
  }

  /** Reads until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#read(signal)
      await pause(readEveryMs, signal)
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, clock, log, prefix } = this.#options
    try {
      const range = { ...mirrorRange(prefix), limit: recordsMax }
      const { kvs } = await client.range(range, { signal, timeoutMs: callTimeoutMs })
      const at = clock.now()
      const before = this.#seen
      this.#seen = new Map(
        kvs.map(({ key, value, modRevision }) => {
          const cluster = clusterOfMirrorKey(prefix, key)
          const known = before.get(cluster)
          const isNew = known?.modRevision !== modRevision
          return [cluster, isNew ? { modRevision, content: decodeRecord(value), at } : known]
        }),
      )
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (!signal.aborted) log.v(2, 'Could not read the mirror records; will retry', { err: error })
    }
  }
}
