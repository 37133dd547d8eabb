/** Changes stored events: decides on the latest state, checks limits, writes, retries. */
import type { Event } from '../api/event.ts'
import { entityTooLarge, isStatus } from '../api/status.ts'
import type { ShownEvent } from '../codec/event/event-bytes.ts'
import { encodeEvent } from '../codec/event/event-json.ts'
import { recorded } from '../lib/tracing/span.ts'
import { StorageError } from '../storage/errors.ts'
import type {
  EventKey,
  EventStorage,
  EventWrites,
  MarksOf,
  NewState,
  StoredEvent,
} from '../storage/storage.ts'
import { unwritten } from '../storage/stored-form.ts'
import { refundFailed, type WriteAdmission, writeOf } from './admission/write-admission.ts'
import { withManagedFields } from './apply/managed-fields.ts'
import { inApiTerms, type ResourceNames } from './storage-errors.ts'
import { type CurrentEvent, readEvent } from './stored-event.ts'
import type { Updated, WriteOptions } from './writes.ts'

/** What to do with an event. One with finalizers is only marked as deleted. */
export interface Decision {
  readonly kind: 'create' | 'update' | 'mark-deleted' | 'remove'
  readonly event: Event
}

interface Decided {
  readonly decision: Decision
  readonly body: Buffer
}

export interface Changed extends Updated {
  readonly decision: Decision
}

function changed(decision: Decision, event: ShownEvent): Changed {
  return { event, isCreated: decision.kind === 'create', decision }
}

interface Written {
  readonly event: Event
  readonly body: Buffer
  readonly stored: StoredEvent | undefined
}

export type Decide = (current: CurrentEvent | undefined) => Decision

export interface ChangesOptions {
  readonly storage: Pick<EventStorage, 'get'>
  readonly writes: Pick<EventWrites, 'update'>
  readonly names: ResourceNames
  /** The largest event that is stored. */
  readonly eventBytesMax: number
  /** Every write is admitted when undefined. */
  readonly admission: Pick<WriteAdmission, 'admit'> | undefined
  readonly marksOf: MarksOf | undefined
}

export class EventChanges {
  readonly #storage: ChangesOptions['storage']
  readonly #writes: ChangesOptions['writes']
  readonly #names: ResourceNames
  readonly #eventBytesMax: number
  readonly #admission: ChangesOptions['admission']
  readonly #marksOf: MarksOf | undefined

  constructor({ storage, writes, names, eventBytesMax, admission, marksOf }: ChangesOptions) {
    this.#storage = storage
    this.#writes = writes
    this.#names = names
    this.#eventBytesMax = eventBytesMax
    this.#admission = admission
    this.#marksOf = marksOf
  }

  /** Like `change`, but drops the field owners, which the client did not request, if they do not fit. */
  async changeOwned(key: EventKey, options: WriteOptions, decide: Decide): Promise<Changed> {
    let isOwned = false
    try {
      return await this.change(key, options, (current) => {
        const decision = decide(current)
        isOwned = decision.event.metadata.managedFields !== undefined
        return decision
      })
    } catch (error) {
      if (!isOwned || !isStatus(error, 'RequestEntityTooLarge')) throw error
      return this.change(key, options, (current) => {
        const decision = decide(current)
        return { ...decision, event: withManagedFields(decision.event, []) }
      })
    }
  }

  /** Decides on the latest state and writes the result; a dry run only returns it. */
  async change(key: EventKey, options: WriteOptions, decide: Decide): Promise<Changed> {
    if (options.isDryRun) {
      const stored = await inApiTerms(this.find(key), this.#names, { isRead: true })
      const { decision, body } = this.#decided(key, stored, options, decide)
      return changed(decision, unwritten(key, body, stored?.version))
    }
    let last: Decided | undefined
    const change = (current: StoredEvent | undefined): NewState | 'remove' => {
      last = this.#decided(key, current, options, decide)
      const { decision, body } = last
      if (decision.kind === 'remove') return 'remove'
      const { event } = decision
      return { body, event, ...this.#marksOf?.(key.cluster, event) }
    }
    const updating = recorded(options.span, 'storage update', (span) =>
      this.#writes.update(key, change, { span }),
    )
    updating.catch((error) => refundFailed(options.writer, error))
    const stored = await inApiTerms(updating, this.#names)
    if (last === undefined) throw new Error('the storage updated an event without a decision')
    const { decision, body } = last
    if (decision.kind !== 'remove') return changed(decision, stored)
    return changed(decision, unwritten(key, body, stored.version))
  }

  /** Decides once. The body is the stored buffer itself if nothing changes. */
  #decided(
    key: EventKey,
    stored: StoredEvent | undefined,
    options: WriteOptions,
    decide: Decide,
  ): Decided {
    const current = stored && { stored, old: readEvent(stored) }
    const decision = decide(current)
    const { kind, event } = decision
    const body = event === current?.old ? current.stored.body : encodeEvent(event)
    if (kind === 'remove') return { decision, body }
    // Equal bytes mean an equal event, so nothing is written.
    if (stored !== undefined && body.equals(stored.body)) return { decision, body: stored.body }
    // No limit on writes may prevent a delete.
    if (kind !== 'mark-deleted') this.checkLimits(key, { event, body, stored }, options)
    return { decision, body }
  }

  async find(key: EventKey): Promise<StoredEvent | undefined> {
    try {
      return await this.#storage.get(key, { signal: new AbortController().signal })
    } catch (error) {
      if (error instanceof StorageError && error.kind === 'missing') return undefined
      throw error
    }
  }

  /**
   * Checks the limits of the event to store. This must be the last check, since it charges the
   * caller. An event that exceeds a limit lowered since may still become smaller.
   */
  checkLimits(key: EventKey, written: Written, { isDryRun, writer }: WriteOptions): void {
    const { body, stored } = written
    const bytesMax = Math.max(this.#eventBytesMax, (stored?.body.length ?? 0) - 1)
    if (body.length > bytesMax) {
      throw entityTooLarge(
        `the event would have ${body.length} bytes, limit is ${this.#eventBytesMax}`,
        undefined,
      )
    }
    if (!isDryRun && writer !== undefined) this.#admission?.admit(writer, writeOf(key, written))
  }
}
