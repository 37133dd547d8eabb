/**
 * The record of a mirror in etcd: the position of each stream, and the state of the mirror. The elected
 * replica writes it, all replicas read it.
 *
 * A write compares the leader's key and the revision of the record that this replica last wrote. The
 * latter fails when etcd was restored from a snapshot: then events before the position in memory are
 * missing, and the work must start again from the restored record.
 */
import type { MirrorConfig } from '../clusters/cluster-sections.ts'
import { connectionMaxFor, type KnownHistory } from '../election/known-history.ts'
import type { Term } from '../election/term.ts'
import type { EtcdClient, KeyValue } from '../etcd/client.ts'
import { isObject, parsedJson } from '../lib/json.ts'
import { mirrorKey, mirrorLeaderKey } from '../storage/etcd/keys.ts'
import type { OriginIdentity } from './origin-identity.ts'
import type { StreamState } from './stream-health.ts'

const callTimeoutMs = 5_000

/** A stream is a namespace, or '' for all of them. */
export function streamsOf({ namespaces }: Pick<MirrorConfig, 'namespaces'>): readonly string[] {
  return namespaces ?? ['']
}

/** Keyed by stream. */
export type Positions = Readonly<Record<string, string>>

/** The identity is that of the cluster to which positions and epoch belong. */
export interface MirrorRecordContent extends OriginIdentity {
  readonly epoch: number
  /** Everything at the origin up to this version is stored. */
  readonly positions: Positions
  readonly state: StreamState
  /** Why the mirror is stalled or lags, or how much was truncated; may be empty. */
  readonly message: string
  readonly lagMs: number
  /** When an event was last stored, in milliseconds since 1970. */
  readonly lastEventAtMs?: number | undefined
  /** Events that this replica dropped, keyed by reason. */
  readonly dropped: Readonly<Record<string, number>>
}

interface Written extends MirrorRecordContent {
  readonly replica: string
  /** The revision of the leader's key, and the number of the write in that term. */
  readonly term: number
  readonly sequence: number
}

export interface MirrorRecordOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn'>
  readonly prefix: string
  readonly cluster: string
  readonly replica: string
  /** Without it, etcd is assumed never to be restored. */
  readonly history?: KnownHistory | undefined
}

export class MirrorRecord {
  readonly #options: MirrorRecordOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  /** The revision that the next write expects. */
  #modRevision = 0
  #sequence = 0

  constructor(options: MirrorRecordOptions) {
    this.#options = options
    this.#key = Buffer.from(mirrorKey(options.prefix, options.cluster))
    this.#leaderKey = Buffer.from(mirrorLeaderKey(options.prefix, options.cluster))
  }

  /** Undefined without a valid record. Rejects with an EtcdError. */
  async read(signal: AbortSignal): Promise<MirrorRecordContent | undefined> {
    const kv = await this.#find(signal)
    this.#modRevision = kv?.modRevision ?? 0
    return kv && decodeRecord(kv.value)
  }

  /**
   * Must not be called concurrently. Returns `lost` when the term is over or etcd has another
   * history, so that the record must be read again under a new term. Rejects with an EtcdError, in
   * which case the record may have been written.
   */
  async save(term: Term, content: MirrorRecordContent): Promise<'saved' | 'lost'> {
    const { client, history, replica } = this.#options
    const connectionMax = connectionMaxFor(history)
    const sequence = ++this.#sequence
    const written: Written = { replica, term: term.revision, sequence, ...content }
    const { succeeded, revision } = await client.txn(
      {
        compare: [
          { key: this.#leaderKey, target: 'modRevision', to: term.revision },
          { key: this.#key, target: 'modRevision', to: this.#modRevision },
        ],
        success: [{ type: 'put', key: this.#key, value: Buffer.from(JSON.stringify(written)) }],
      },
      { timeoutMs: callTimeoutMs, connectionMax },
    )
    if (succeeded) {
      this.#modRevision = revision
      return 'saved'
    }
    return (await this.#isOwn(term)) ? this.save(term, content) : 'lost'
  }

  /** Whether this replica wrote the record in this term without learning of it. */
  async #isOwn(term: Term): Promise<boolean> {
    const kv = await this.#find(term.signal)
    if (kv === undefined || kv.modRevision <= this.#modRevision) return false
    const { term: writtenIn, sequence = 0 } = parse(kv.value) as Partial<Written>
    if (writtenIn !== term.revision || sequence > this.#sequence) return false
    this.#modRevision = kv.modRevision
    return true
  }

  async #find(signal: AbortSignal): Promise<KeyValue | undefined> {
    const { client } = this.#options
    const { kvs } = await client.range({ key: this.#key }, { signal, timeoutMs: callTimeoutMs })
    return kvs[0]
  }
}

/** Undefined for a value that is not a record, such as one written by an operator. */
export function decodeRecord(
  value: Buffer,
): (MirrorRecordContent & { readonly replica: string }) | undefined {
  const written = parse(value) as Partial<Written>
  const { origin, originServer, originName, originUid } = written
  const { epoch, positions, state, message, lagMs, lastEventAtMs, dropped, replica } = written
  const isRecord =
    typeof origin === 'string' &&
    isTextIfAny(originServer) &&
    isTextIfAny(originName) &&
    isTextIfAny(originUid) &&
    typeof epoch === 'number' &&
    isRecordOf(positions, 'string') &&
    (state === 'Syncing' || state === 'Following' || state === 'Stalled') &&
    typeof message === 'string' &&
    typeof lagMs === 'number' &&
    (lastEventAtMs === undefined || typeof lastEventAtMs === 'number') &&
    isRecordOf(dropped, 'number') &&
    typeof replica === 'string'
  if (!isRecord) return undefined
  const identity = { origin, originServer, originName, originUid }
  return { ...identity, epoch, positions, state, message, lagMs, lastEventAtMs, dropped, replica }
}

function isTextIfAny(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function parse(value: Buffer): object {
  const record = parsedJson(value)
  return isObject(record) ? record : {}
}

function isRecordOf<T>(value: T | undefined, type: 'string' | 'number'): value is T {
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).every((member) => typeof member === type)
}
