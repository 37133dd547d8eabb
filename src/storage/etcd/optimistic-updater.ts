import type { KeyValue } from '../../etcd/client.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import { PerKeyQueue } from '../../lib/per-key-queue.ts'
import type { Span, Traced } from '../../lib/tracing/span.ts'
import { missing, StorageError } from '../errors.ts'
import { revisionOf } from '../resource-version.ts'
import type {
  ConnectionNumber,
  EventKey,
  NewState,
  StoredEvent,
  UpdateOptions,
} from '../storage.ts'
import {
  bodyOf,
  newStateOf,
  type PreparedValue,
  prepareValue,
  StoredBody,
  trailerAfter,
  withVersion,
} from '../stored-form.ts'
import { found } from './event-decoding.ts'
import type { GroupCommit } from './group-commit.ts'
import type { EventKeys } from './keys.ts'

/**
 * How long an update may wait in the queue and retry after conflicts. Conflicts can go on for as
 * long as other replicas keep writing to the same event: there is no fairness between replicas.
 */
const updateTimeoutMs = 30_000
const waitingMax = 10_000
const retryAfterMs = 1_000

/** What an update does with an event: write other bytes, delete it, or leave it unchanged. */
export type Intent = NewState | Buffer | 'delete' | 'keep'

/** Runs once per attempt, and the last run counts. An error that it throws ends the update. */
export type Decide = (current: StoredEvent | undefined) => Intent

/** Decodes the current value. An error that it throws ends the update. */
export type Find = (kv: KeyValue | undefined, key: EventKey) => StoredEvent | undefined

export interface OptimisticUpdaterOptions {
  readonly keys: EventKeys
  readonly writes: Pick<GroupCommit, 'submit'>
  /** The current value, by a linearizable read. */
  readonly read: (key: EventKey, traced: Traced) => Promise<KeyValue | undefined>
  /** The newest connection so far. */
  readonly newestConnection: () => ConnectionNumber
  readonly clock?: Clock | undefined
}

/** A state to decide on. `isConfirmed`: it was current at some time since the call started. */
interface Observed {
  readonly stored: StoredEvent | undefined
  readonly isConfirmed: boolean
  /** A write that depends on it must not be sent over later connections. */
  readonly connectionMax: ConnectionNumber
}

/** How an attempt ended: with a result and the new state, or with the conflicting value. */
type Attempt =
  | { readonly result: StoredEvent; readonly left: StoredEvent | undefined }
  | { readonly current: KeyValue | undefined }
  /** It was not sent: the state that it depends on was read over connections that are lost. */
  | 'outdated'

/**
 * Updates events with optimistic concurrency: read, decide, write if there was no other write in
 * between; otherwise retry from the value that the refused write returned.
 *
 * The first read is saved when a guess is available: the state that the previous update of the same
 * key left, the state that the caller knows, or that there is no event if the caller expects that. A
 * guess may be stale. That does not harm a write, which etcd then refuses, but no result may depend
 * on a guess alone: when the decision is to throw or to write nothing, it is repeated on a confirmed
 * state.
 */
export class OptimisticUpdater {
  readonly #options: OptimisticUpdaterOptions
  readonly #queue = new PerKeyQueue<Observed>()

  constructor(options: OptimisticUpdaterOptions) {
    this.#options = options
  }

  async update(
    key: EventKey,
    decide: Decide,
    {
      find = found,
      fence,
      known,
      isProbablyNew,
      span,
    }: UpdateOptions & { readonly find?: Find } = {},
  ): Promise<StoredEvent> {
    if (this.#queue.waiting >= waitingMax) throw overloaded()
    const clock = this.#options.clock ?? monotonicClock
    const etcdKey = this.#options.keys.format(key)
    const previous = this.#queue.enter(etcdKey)
    const giveUpAt = clock.now() + updateTimeoutMs
    let left: Observed | undefined
    try {
      const guess = previous === undefined ? undefined : await previous
      if (clock.now() > giveUpAt) throw overloaded()
      let observed =
        guess ??
        (known && { ...known, isConfirmed: false }) ??
        (isProbablyNew === true ? this.#assumeAbsent() : await this.#read(key, find, span))
      while (clock.now() <= giveUpAt) {
        const intent = decideOn(observed, decide)
        if (intent === undefined) {
          observed = await this.#read(key, find, span)
          continue
        }
        const ended = await this.#attempt(key, observed, { intent, fence, span })
        if (ended === 'outdated') {
          observed = await this.#read(key, find, span)
          continue
        }
        if ('result' in ended) {
          const { connectionMax } = observed
          left = { stored: ended.left, isConfirmed: false, connectionMax }
          return ended.result
        }
        const { connectionMax } = observed
        observed = { stored: find(ended.current, key), isConfirmed: true, connectionMax }
      }
      throw new StorageError({
        kind: 'conflict',
        message: `event ${key.namespace}/${key.name} kept changing during an update`,
        key,
      })
    } finally {
      this.#queue.leave(etcdKey, left)
    }
  }

  async #attempt(
    key: EventKey,
    observed: Observed,
    { intent, fence, span }: { readonly intent: Intent } & UpdateOptions,
  ): Promise<Attempt> {
    const { keys, writes } = this.#options
    const { stored } = observed
    if (intent === 'keep') {
      if (stored === undefined) throw missing(key)
      return { result: stored, left: stored }
    }
    const expected = stored === undefined ? 0 : revisionOf(stored.version)
    const value = intent === 'delete' ? undefined : preparedOf(key, stored, intent)
    const { connectionMax } = observed
    const operation = { key: keys.format(key), expected, value, fence, connectionMax, span }
    const outcome = await writes.submit(operation)
    if (!outcome.applied) {
      if (outcome.isOutdated === true) return 'outdated'
      // The key was as expected, so it was the fence that refused the write.
      if (fence !== undefined && (outcome.current?.modRevision ?? 0) === expected) throw fenced(key)
      return { current: outcome.current }
    }
    const { version, writtenAtMs } = outcome
    if (value === undefined) {
      if (stored === undefined) throw missing(key)
      return { result: withVersion(stored, version), left: undefined }
    }
    const { versionOffset, trailer } = value
    const written = { key, body: bodyOf(value), trailer, versionOffset, version, writtenAtMs }
    const result = new StoredBody(written)
    return { result, left: result }
  }

  /** A guess like any other: if there is an event, the write is refused. */
  #assumeAbsent(): Observed {
    const connectionMax = this.#options.newestConnection()
    return { stored: undefined, isConfirmed: false, connectionMax }
  }

  /** When this fails nothing has been written: earlier attempts, if any, were refused. */
  async #read(key: EventKey, find: Find, span: Span | undefined): Promise<Observed> {
    const connectionMax = this.#options.newestConnection()
    try {
      const read = await this.#options.read(key, { span })
      return { stored: find(read, key), isConfirmed: true, connectionMax }
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== 'timeout') throw error
      const { message } = error
      throw new StorageError({ kind: 'unavailable', message, key, retryAfterMs, cause: error })
    }
  }
}

function preparedOf(
  key: EventKey,
  stored: StoredEvent | undefined,
  intent: NewState | Buffer,
): PreparedValue {
  const next = newStateOf(intent)
  return prepareValue(next.body, undefined, trailerAfter(key, stored, next))
}

/** Undefined when the decision needs a confirmed state. */
function decideOn(observed: Observed, decide: Decide): Intent | undefined {
  try {
    const intent = decide(observed.stored)
    return intent === 'keep' && !observed.isConfirmed ? undefined : intent
  } catch (error) {
    if (observed.isConfirmed) throw error
    return undefined
  }
}

function fenced(key: EventKey): StorageError {
  return new StorageError({
    kind: 'fenced',
    message: 'another replica has been elected to do this work',
    key,
  })
}

function overloaded(): StorageError {
  return new StorageError({
    kind: 'overloaded',
    message: 'too many updates are queued for the same events',
    retryAfterMs,
  })
}
