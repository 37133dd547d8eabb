import type { KeyValue } from '../etcd/client.ts'
import { type Clock, monotonicClock } from '../lib/clock.ts'
import { missing, StorageError } from './errors.ts'
import { found } from './event-decoding.ts'
import type { GroupCommit } from './group-commit.ts'
import { KeyTurns } from './key-turns.ts'
import type { EventKeys } from './keys.ts'
import { revisionOf } from './resource-version.ts'
import type { ConnectionNumber, EventKey, StoredEvent } from './storage.ts'
import { bodyOf, prepareValue, StoredBody, withVersion } from './stored-form.ts'

/**
 * How long a change may wait for its turn and start over because others were faster. Others can be
 * faster for as long as they have more to write to the same event: nobody yields here.
 */
const changeWithinMs = 30_000
const waitingMax = 10_000
const retryAfterMs = 1_000

/** What is to become of an event: other bytes, nothing at all, or what it is. */
export type Intent = Buffer | 'delete' | 'keep'

/** Runs once per attempt, and the last run counts. What it throws is the answer. */
export type Decide = (current: StoredEvent | undefined) => Intent

/** Reads what is there; what it throws is the answer. */
export type Find = (kv: KeyValue | undefined, key: EventKey) => StoredEvent | undefined

export interface RewriterOptions {
  readonly keys: EventKeys
  readonly writes: Pick<GroupCommit, 'submit'>
  /** What is there now, by a linearizable read. */
  readonly read: (key: EventKey) => Promise<KeyValue | undefined>
  /** What is believed to be there; undefined when nothing is known. */
  readonly recall: (key: EventKey) => StoredEvent | undefined
  /** Up to which connection that holds. */
  readonly recalledFor: () => ConnectionNumber
  /** The newest one there has been. */
  readonly newestConnection: () => ConnectionNumber
  readonly clock?: Clock | undefined
}

/** A state to decide on. `isSure`: it was there at some moment since the call was made. */
interface Seen {
  readonly stored: StoredEvent | undefined
  readonly isSure: boolean
  /** A write that rests on it must not go over later connections. */
  readonly connectionMax: ConnectionNumber
}

/** How an attempt ended: with an answer and what it left, or with what was there instead. */
type Attempt =
  | { readonly answer: StoredEvent; readonly left: StoredEvent | undefined }
  | { readonly current: KeyValue | undefined }
  /** It was not sent: what it rests on was seen over connections that are gone. */
  | 'outdated'

/**
 * Changes events that are there: look, decide, write if nobody wrote in between, and again from what
 * the refusal found.
 *
 * The first look is saved where a guess is at hand: what the change before on the same key left, or
 * what the memory holds. A guess may be old. That does no harm to a write, which etcd refuses then,
 * but it must not be what an answer rests on: when the decision is to throw or to write nothing, it
 * is made again on what is really there.
 */
export class Rewriter {
  readonly #options: RewriterOptions
  readonly #turns = new KeyTurns<Seen>()

  constructor(options: RewriterOptions) {
    this.#options = options
  }

  async rewrite(key: EventKey, decide: Decide, find: Find = found): Promise<StoredEvent> {
    if (this.#turns.waiting >= waitingMax) throw overloaded()
    const clock = this.#options.clock ?? monotonicClock
    const line = this.#options.keys.format(key)
    const turn = this.#turns.enter(line)
    const giveUpAt = clock.now() + changeWithinMs
    let left: Seen | undefined
    try {
      const guess = turn === undefined ? undefined : await turn
      if (clock.now() > giveUpAt) throw overloaded()
      let seen = guess ?? this.#recall(key) ?? (await this.#look(key, find))
      while (clock.now() <= giveUpAt) {
        const intent = decideOn(seen, decide)
        if (intent === undefined) {
          seen = await this.#look(key, find)
          continue
        }
        const ended = await this.#attempt(key, seen, intent)
        if (ended === 'outdated') {
          seen = await this.#look(key, find)
          continue
        }
        if ('answer' in ended) {
          const { connectionMax } = seen
          left = { stored: ended.left, isSure: false, connectionMax }
          return ended.answer
        }
        const { connectionMax } = seen
        seen = { stored: find(ended.current, key), isSure: true, connectionMax }
      }
      throw new StorageError({
        kind: 'conflict',
        message: `event ${key.namespace}/${key.name} kept changing`,
        key,
      })
    } finally {
      this.#turns.leave(line, left)
    }
  }

  async #attempt(key: EventKey, seen: Seen, intent: Intent): Promise<Attempt> {
    const { keys, writes } = this.#options
    const { stored } = seen
    if (intent === 'keep') {
      if (stored === undefined) throw missing(key)
      return { answer: stored, left: stored }
    }
    const expected = stored === undefined ? 0 : revisionOf(stored.version)
    const value = intent === 'delete' ? undefined : prepareValue(intent)
    const { connectionMax } = seen
    const operation = { key: keys.format(key), expected, value, connectionMax }
    const outcome = await writes.submit(operation)
    if (!outcome.applied) {
      return outcome.isOutdated === true ? 'outdated' : { current: outcome.current }
    }
    const { version, writtenAtMs } = outcome
    if (value === undefined) {
      if (stored === undefined) throw missing(key)
      return { answer: withVersion(stored, version), left: undefined }
    }
    const { versionOffset } = value
    const written = { key, body: bodyOf(value), versionOffset, version, writtenAtMs }
    const answer = new StoredBody(written)
    return { answer, left: answer }
  }

  #recall(key: EventKey): Seen | undefined {
    const stored = this.#options.recall(key)
    return stored && { stored, isSure: false, connectionMax: this.#options.recalledFor() }
  }

  /** Nothing has been written when this fails: what was sent before, if anything, was refused. */
  async #look(key: EventKey, find: Find): Promise<Seen> {
    const connectionMax = this.#options.newestConnection()
    try {
      return { stored: find(await this.#options.read(key), key), isSure: true, connectionMax }
    } catch (error) {
      if (!(error instanceof StorageError) || error.kind !== 'timeout') throw error
      const { message } = error
      throw new StorageError({ kind: 'unavailable', message, key, retryAfterMs, cause: error })
    }
  }
}

/** Undefined when the decision calls for being sure. */
function decideOn(seen: Seen, decide: Decide): Intent | undefined {
  try {
    const intent = decide(seen.stored)
    return intent === 'keep' && !seen.isSure ? undefined : intent
  } catch (error) {
    if (seen.isSure) throw error
    return undefined
  }
}

function overloaded(): StorageError {
  return new StorageError({
    kind: 'overloaded',
    message: 'too many changes wait for others on the same events',
    retryAfterMs,
  })
}
