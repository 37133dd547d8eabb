/**
 * The write path of mirrors. It stores events as their origin has them, without validation and with
 * the origin's uid and times; no client request reaches it.
 *
 * Every write may be repeated and may arrive late: it compares versions of the origin, and it carries
 * a fence, so that a replica that is no longer elected writes nothing.
 */
import type { Event } from '../api/event.ts'
import { StatusError } from '../api/status.ts'
import { isDnsLabel, pathSegmentNames } from '../api/validation/names.ts'
import { isUnreadable, StorageError } from '../storage/errors.ts'
import { isPart } from '../storage/event-scope.ts'
import type {
  EventKey,
  EventStorage,
  Fence,
  MarksOf,
  NewState,
  StoredEvent,
} from '../storage/storage.ts'
import { fieldsOf } from '../storage/stored-form.ts'
import { type AdmittedWrite, type WriteAdmission, writeOf } from './admission/write-admission.ts'
import {
  boundedBody,
  compareOriginVersions,
  heldBy,
  isResourceVersion,
  LaterEpoch,
  lastActivityMs,
  lastWriteMs,
  type MirroredBody,
  type OriginEvent,
  type OriginVersion,
} from './origin-version.ts'
import { readEvent } from './stored-event.ts'

/** A delete at the origin this shortly before the event's expiry is not repeated here. */
const ttlSlackMsMin = 60_000
const ttlSlackShare = 0.1

/** Why an event can never be stored. */
export const dropReasons = ['too-large', 'invalid', 'unreadable'] as const
export type DropReason = (typeof dropReasons)[number]

export type WriteResult =
  | 'stored'
  /** Stored without the parts that made it too large. */
  | 'truncated'
  /** Deleted here as well. */
  | 'removed'
  /** The same version is already stored. */
  | 'equal'
  /** A newer version is already stored. */
  | 'older'
  /** Not stored here, and so old that retention would have deleted it. */
  | 'expired'
  /** Deleted at the origin but retained here, since it may have expired there. */
  | 'kept'
  /** Deleted at the origin and not stored here. */
  | 'absent'
  | DropReason

/** Common to all writes of a term. */
export interface MirrorTarget {
  readonly cluster: string
  readonly epoch: number
  readonly fence: Fence
}

export interface MirrorWriterOptions {
  readonly storage: Pick<EventStorage, 'update'>
  /** Looks an event up in the cache, which may be stale. */
  readonly recall: (key: EventKey) => StoredEvent | undefined
  /** The largest event that is stored untruncated. Default: what etcd accepts. */
  readonly eventBytesMax?: number | undefined
  /** Default: every write is admitted. */
  readonly admission?: Pick<WriteAdmission, 'admitMirrored'> | undefined
  /** Default: nothing is known. */
  readonly marksOf?: MarksOf | undefined
  /** Milliseconds from the last change of an event until it expires here. */
  readonly lifetimeOf: (event: Pick<StoredEvent, 'key' | 'fields'>) => number | 'never'
  /** Milliseconds since 1970; compared only with the timestamps of events. */
  readonly now?: (() => number) | undefined
}

export class MirrorWriter {
  readonly #options: MirrorWriterOptions
  readonly #now: () => number
  readonly #eventBytesMax: number
  /** The charge for each state, so that a repeated attempt need not encode it again. */
  readonly #charges = new WeakMap<OriginEvent, AdmittedWrite | 'charged'>()

  constructor(options: MirrorWriterOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#eventBytesMax = options.eventBytesMax ?? Number.POSITIVE_INFINITY
  }

  /**
   * Stores a state of the origin unless the same or a newer one is stored. `isListed` says that it
   * comes from a list, not from a watch. A list also has events that retention has deleted here.
   * They are skipped as `expired`; otherwise each list would bring them back. Rejects with a
   * StorageError when the write can be repeated, has to wait (MirrorThrottled) or is fenced, and
   * with LaterEpoch.
   */
  async put(
    target: MirrorTarget,
    item: OriginEvent,
    { isListed }: { readonly isListed: boolean },
  ): Promise<WriteResult> {
    const candidate = this.#candidate(target, item)
    if (candidate === undefined) return 'invalid'
    const decide = (current: StoredEvent | undefined): WriteResult | 'write' =>
      current === undefined && isListed && this.#isExpired(candidate)
        ? 'expired'
        : verdict(candidate, current)
    // Most of a repeated list is already stored. A cache with this version or a newer one proves
    // that it was stored, since versions never go back. If it was deleted since, that came later.
    const known = this.#options.recall(candidate.key)
    const early = known === undefined ? 'write' : verdict(candidate, known)
    if (early !== 'write') return early
    try {
      // Charged before the update: one that throws would read from etcd and decide again.
      if (this.#charges.has(item) || decide(known) === 'write') this.#charge(candidate, item, known)
    } catch (error) {
      return dropReasonOf(error)
    }
    return this.#write(target, candidate.key, (current) => {
      const decided = decide(current)
      if (decided !== 'write') return { result: decided, body: undefined }
      const { body, isTruncated } = candidate.body()
      if (body.length > this.#eventBytesMax) return { result: 'too-large', body: undefined }
      // Already charged above, unless the cache made the write look unnecessary.
      this.#charge(candidate, item, current)
      const { event } = item
      const marks = this.#options.marksOf?.(target.cluster, event)
      return { result: isTruncated ? 'truncated' : 'stored', body: { body, event, ...marks } }
    })
  }

  /**
   * Repeats a delete of the origin, unless it may have been an expiry there. `item` is the last state
   * with the version of the delete. A newer state or an event with another uid is not deleted.
   */
  async delete(
    target: MirrorTarget,
    item: OriginEvent,
    { originTtlMs }: { readonly originTtlMs: number },
  ): Promise<WriteResult> {
    const candidate = this.#candidate(target, item)
    if (candidate === undefined) return 'invalid'
    if (!this.#isYoung(item.event, originTtlMs)) return 'kept'
    return this.#write(target, candidate.key, (current) => {
      if (current === undefined) return { result: 'absent', body: undefined }
      const { uid, version } = heldBy(current)
      if (version !== undefined && version.epoch > target.epoch) throw new LaterEpoch(version.epoch)
      const isSame = uid === candidate.uid && version !== undefined
      return isSame && compareOriginVersions(version, candidate.version) <= 0
        ? { result: 'removed', body: 'remove' }
        : { result: 'older', body: undefined }
    })
  }

  /**
   * Deletes an event that is missing from a list of the origin of version `listed`, if its age proves
   * that it has not expired there.
   */
  async deleteMissing(
    target: MirrorTarget,
    stored: StoredEvent,
    { listed, originTtlMs }: { readonly listed: string; readonly originTtlMs: number },
  ): Promise<WriteResult> {
    const { version } = heldBy(stored)
    if (version === undefined || !this.#isYoung(readEvent(stored), originTtlMs)) return 'kept'
    const list = { epoch: target.epoch, resourceVersion: listed }
    if (compareOriginVersions(version, list) > 0) return 'older'
    return this.#write(target, stored.key, (current) => {
      if (current === undefined) return { result: 'absent', body: undefined }
      return current.version === stored.version
        ? { result: 'removed', body: 'remove' }
        : { result: 'older', body: undefined }
    })
  }

  /** Throws MirrorThrottled. Charges each state once. */
  #charge({ key, body }: Candidate, item: OriginEvent, stored: StoredEvent | undefined): void {
    const { admission } = this.#options
    const known = this.#charges.get(item)
    if (admission === undefined || known === 'charged') return
    const { event } = item
    if (known === undefined && body().body.length > this.#eventBytesMax) return
    const write = known ?? writeOf(key, { event, body: body().body, stored })
    this.#charges.set(item, write)
    admission.admitMirrored(write)
    this.#charges.set(item, 'charged')
  }

  #candidate(target: MirrorTarget, item: OriginEvent): Candidate | undefined {
    return candidateOf(target, item, this.#eventBytesMax)
  }

  async #write(
    target: MirrorTarget,
    key: EventKey,
    decide: (current: StoredEvent | undefined) => Decision,
  ): Promise<WriteResult> {
    let result: WriteResult = 'absent'
    try {
      await this.#options.storage.update(
        key,
        (current) => {
          const decision = decide(current)
          result = decision.result
          return decision.body
        },
        { fence: target.fence, isProbablyNew: true },
      )
      return result
    } catch (error) {
      if (isMissing(error)) return result
      return dropReasonOf(error)
    }
  }

  #isExpired({ event, key, body }: Candidate): boolean {
    const lifetimeMs = this.#options.lifetimeOf({
      key,
      get fields() {
        return fieldsOf({ key, body: body().body })
      },
    })
    const activeAt = lastActivityMs(event)
    return lifetimeMs !== 'never' && activeAt !== undefined && this.#now() - activeAt > lifetimeMs
  }

  /** Whether the event is too young to have expired at the origin. */
  #isYoung(event: Event, originTtlMs: number): boolean {
    const activeAt = lastWriteMs(event)
    const slackMs = Math.max(ttlSlackMsMin, originTtlMs * ttlSlackShare)
    return activeAt !== undefined && this.#now() - activeAt < originTtlMs - slackMs
  }
}

interface Decision {
  readonly result: WriteResult
  readonly body: NewState | 'remove' | undefined
}

/** A state of the origin that may be stored. */
interface Candidate {
  readonly key: EventKey
  readonly uid: string
  readonly event: Event
  readonly version: OriginVersion
  /** The body to store, optionally with another version. Encoded once for its own version. */
  readonly body: (version?: OriginVersion) => MirroredBody
}

/** Undefined when the event cannot have a key here, or its version cannot be compared. */
function candidateOf(
  { cluster, epoch }: MirrorTarget,
  { event, resourceVersion }: OriginEvent,
  bytesMax: number,
): Candidate | undefined {
  const { namespace = '', name = '', uid = '' } = event.metadata
  if (!isDnsLabel(namespace) || !isName(name) || !isResourceVersion(resourceVersion)) {
    return undefined
  }
  const version = { epoch, resourceVersion }
  let encoded: MirroredBody | undefined
  const body = (other?: OriginVersion): MirroredBody => {
    if (other !== undefined) return boundedBody(event, other, bytesMax)
    encoded ??= boundedBody(event, version, bytesMax)
    return encoded
  }
  return { key: { cluster, namespace, name }, uid, event, version, body }
}

const NAME_LENGTH_MAX = 253

/** Whether a path can contain the name, which holds for all names that an API server accepts. */
function isName(name: string): boolean {
  return (
    name.length <= NAME_LENGTH_MAX &&
    name.isWellFormed() &&
    !/\p{Cc}/u.test(name) &&
    pathSegmentNames.name(name).length === 0 &&
    isPart(name)
  )
}

/** Whether to write a candidate over the current event, and the result if not. */
function verdict(candidate: Candidate, current: StoredEvent | undefined): WriteResult | 'write' {
  if (current === undefined) return 'write'
  const { uid, version } = heldBy(current)
  // Not written by a mirror: the origin decides what this name holds.
  if (version === undefined) return 'write'
  if (version.epoch > candidate.version.epoch) throw new LaterEpoch(version.epoch)
  const order = compareOriginVersions(candidate.version, version)
  if (order < 0) return 'older'
  if (order === 0) return uid === candidate.uid ? 'equal' : 'write'
  return isUnchanged(candidate, current, version) ? 'equal' : 'write'
}

/**
 * Whether only the epoch differs. After the origin was restored, everything is listed again, and most
 * events are unchanged: writing them again would extend their lifetimes.
 */
function isUnchanged(candidate: Candidate, current: StoredEvent, held: OriginVersion): boolean {
  if (candidate.version.resourceVersion !== held.resourceVersion) return false
  return candidate.body(held).body.equals(current.body)
}

function isMissing(error: unknown): boolean {
  return error instanceof StorageError && error.kind === 'missing'
}

/** Rethrows errors after which the write can be repeated. */
function dropReasonOf(error: unknown): DropReason {
  if (isUnreadable(error)) return 'unreadable'
  if (error instanceof StorageError && error.kind === 'too-large') return 'too-large'
  // The encoder rejects strings that do not fit into etcd.
  if (error instanceof StatusError) return error.code === 413 ? 'too-large' : 'invalid'
  throw error
}
