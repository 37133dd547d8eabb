import { randomUUID } from 'node:crypto'
import type { Event } from '../api/event.ts'
import type { EventGroup } from '../api/event-groups.ts'
import type { FieldError } from '../api/field-error.ts'
import { generatedName, RandomSuffixes } from '../api/random-suffix.ts'
import { badRequest, entityTooLarge, invalid, isStatus, StatusError } from '../api/status.ts'
import type { ShownEvent } from '../codec/event-bytes.ts'
import { encodeEvent } from '../codec/event-json.ts'
import { isUnreadable, StorageError } from '../storage/errors.ts'
import type { EventKey, EventStorage, ReadOptions, StoredEvent } from '../storage/storage.ts'
import { unwritten } from '../storage/stored-form.ts'
import type { Applied } from './apply.ts'
import { CreationNeeded, checkUid, checkVersion, noSuchUid } from './change-refusals.ts'
import { readVersion } from './list-position.ts'
import { type ServedVersions, type Writing, withManagedFields } from './managed-fields.ts'
import { checkPreconditions, unknownUid } from './preconditions.ts'
import {
  type Attempt,
  alreadyExists,
  notFound,
  noUniqueName,
  type ResourceNames,
  resourceNames,
  statusOfStorageError,
} from './storage-errors.ts'
import { type CurrentEvent, readEvent } from './stored-event.ts'
import { afterDelete, changedEvent, isReleased, newEvent } from './strategy.ts'
import { settled, tracked } from './update-tracking.ts'
import type { ChangeOptions, Deleted, DeleteOptions, Updated, WriteOptions } from './writes.ts'

const suffixes = new RandomSuffixes()

/** Names made up for one request before it is told that none was free. */
const nameAttempts = 8

/** What etcd stores with an event besides its body and its name: header, revisions, page entries. */
const STORED_OVERHEAD_BYTES = 128

export interface RegistryOptions {
  readonly storage: EventStorage
  /** Under which they are asked for: how they are named, and what they are held to. */
  readonly group: EventGroup
  /** All that are served. */
  readonly servedVersions?: readonly string[] | undefined
  /** The largest event that is stored; without it, what etcd takes. */
  readonly eventBytesMax?: number | undefined
  /** Milliseconds since 1970, for the times that events are given. */
  readonly now?: (() => number) | undefined
}

/**
 * What the verbs mean for an event, in terms of the storage. Whatever fails, fails as a StatusError
 * in the words of the API.
 */
export class EventRegistry {
  readonly names: ResourceNames
  readonly servedVersions: ServedVersions
  readonly #storage: EventStorage
  readonly #group: EventGroup
  readonly #eventBytesMax: number
  readonly #now: () => number
  readonly #second: { at: number; printed: string } = { at: Number.NaN, printed: '' }

  constructor(options: RegistryOptions) {
    this.#storage = options.storage
    this.#now = options.now ?? Date.now
    this.#group = options.group
    this.#eventBytesMax = options.eventBytesMax ?? Number.POSITIVE_INFINITY
    this.names = resourceNames(options.group.name)
    this.servedVersions = new Set([...(options.servedVersions ?? []), this.#group.apiVersion])
  }

  /** `asked` is `notOlderThan` in the client's digits. */
  async get(
    key: EventKey,
    { asked, ...options }: ReadOptions & { readonly asked?: string },
  ): Promise<ShownEvent> {
    const attempt = { wanted: options.notOlderThan, asked, isRead: true }
    return this.#run(this.#storage.get(key, options), attempt)
  }

  async create(namespace: string, sent: Event, options: WriteOptions): Promise<ShownEvent> {
    const { resourceVersion = '', name, generateName = '' } = sent.metadata
    // What is not a version at all says nothing, and is dropped with the other fields of ours.
    if (/^0*[1-9][0-9]*$/.test(resourceVersion)) {
      throw badRequest('resourceVersion should not be set on objects to be created')
    }
    if (name !== undefined || generateName === '') {
      return this.#createNamed(namespace, sent, { ...options, name })
    }
    for (let attempt = 1; ; attempt++) {
      const made = generatedName(generateName, suffixes.next())
      try {
        return await this.#createNamed(namespace, sent, { ...options, name: made })
      } catch (error) {
        if (!isStatus(error, 'AlreadyExists')) throw error
        if (attempt === nameAttempts) throw noUniqueName(this.names, made)
      }
    }
  }

  /** Replaces an event, or creates it; fails with CreationNeeded when it may not. */
  async update(
    key: EventKey,
    sent: Event,
    options: ChangeOptions & { readonly mayCreate: boolean },
  ): Promise<Updated> {
    let isCreated = false
    const event = await this.#changeOwned(key, options, (current) => {
      isCreated = current === undefined
      checkUid(this.names, key, { sent: sent.metadata.uid, stored: current?.old.metadata.uid })
      if (current === undefined) {
        const event = this.#asNew(key, sent)
        if (!options.mayCreate) throw new CreationNeeded()
        return { event, isRemoved: false }
      }
      return this.#next(sent, current, options)
    })
    return { event, isCreated }
  }

  /**
   * Makes of an event what `patch` makes of it, from the newest state however often that takes.
   * `patch` must be repeatable: what its last run made counts.
   */
  async patch(
    key: EventKey,
    patch: (current: CurrentEvent) => Event,
    options: ChangeOptions,
  ): Promise<ShownEvent> {
    return this.#changeOwned(key, options, (current) => {
      if (current === undefined) throw notFound(this.names, key.name)
      return this.#next(patch(current), current, options)
    })
  }

  /** Makes of an event, or of nothing, what is applied. `apply` must be repeatable as well. */
  async apply(
    key: EventKey,
    apply: Apply,
    options: WriteOptions & { readonly mayCreate: boolean },
  ): Promise<Updated> {
    let isCreated = false
    const event = await this.#change(key, options, (current) => {
      isCreated = current === undefined
      const { event: made, managedFields } = apply(current, this.#timeNow())
      if (current !== undefined) {
        const owned = (next: Event): Event => settled(next, managedFields, current)
        return this.#checkedNext(made, current, owned)
      }
      const { uid } = made.metadata
      if (uid !== undefined) throw noSuchUid(this.names, key, uid)
      const created = withManagedFields(this.#asNew(key, made), managedFields)
      if (!options.mayCreate) throw new CreationNeeded()
      return { event: created, isRemoved: false }
    })
    return { event, isCreated }
  }

  async delete(key: EventKey, options: DeleteOptions): Promise<Deleted> {
    try {
      return await this.#delete(key, options)
    } catch (error) {
      const cause = error instanceof StatusError ? error.cause : undefined
      const isDamaged = cause instanceof StorageError && cause.kind === 'corrupt'
      // Of a collection only what was listed is deleted, and this was not.
      if (!isDamaged || options.isDryRun || options.isMeant !== undefined) throw error
      return this.#deleteDamaged(key, options)
    }
  }

  /** What cannot be read has a name and a version; a precondition on anything else fails. */
  async #deleteDamaged(key: EventKey, options: DeleteOptions): Promise<Deleted> {
    const { preconditions } = options
    const guard = (stored: StoredEvent): void => {
      checkPreconditions(key, { stored, old: readEvent(stored) }, preconditions)
      if (preconditions.uid !== undefined) throw unknownUid(key)
    }
    const event = await this.#run(this.#storage.delete(key, guard))
    return { event, uid: '', isGone: true }
  }

  async #delete(key: EventKey, options: DeleteOptions): Promise<Deleted> {
    let isGone = true
    let uid = ''
    const event = await this.#change(key, options, (current) => {
      if (current === undefined || options.isMeant?.(current.stored) === false) {
        throw notFound(this.names, key.name)
      }
      uid = current.old.metadata.uid ?? ''
      checkPreconditions(key, current, options.preconditions)
      const left = afterDelete(current.old, this.#timeNow())
      isGone = left === undefined
      if (left === undefined) return { event: current.old, isRemoved: true }
      return { event: left, isRemoved: false, isDeletion: true }
    })
    return { event, uid, isGone }
  }

  /** A change that asks for no owners: if the event does not fit with those it has, it loses them. */
  async #changeOwned(key: EventKey, options: WriteOptions, decide: Decide): Promise<ShownEvent> {
    let isOwned = false
    try {
      return await this.#change(key, options, (current) => {
        const decision = decide(current)
        isOwned = decision.event.metadata.managedFields !== undefined
        return decision
      })
    } catch (error) {
      if (!(isOwned && isStatus(error, 'RequestEntityTooLarge'))) throw error
      return this.#change(key, options, (current) => {
        const decision = decide(current)
        return { ...decision, event: withManagedFields(decision.event, []) }
      })
    }
  }

  /** A change to the newest state, or for a dry run what would become of it. */
  async #change(key: EventKey, options: WriteOptions, decide: Decide): Promise<ShownEvent> {
    let removed: Buffer | undefined
    const change = (stored: StoredEvent | undefined): Buffer | 'remove' => {
      removed = undefined
      const current = stored && { stored, old: readEvent(stored) }
      const { event, isRemoved, isDeletion } = decide(current)
      const body = event === current?.old ? current.stored.body : encodeEvent(event)
      // The same bytes are the same event: nothing is to be written.
      if (stored !== undefined && !isRemoved && body.equals(stored.body)) return stored.body
      if (isRemoved) {
        removed = body
        return 'remove'
      }
      if (isDeletion !== true) this.#limit(key, { event, body, stored }, options)
      return body
    }
    if (options.isDryRun) {
      const current = await this.#run(this.#find(key), { isRead: true })
      const outcome = change(current)
      const body = outcome === 'remove' ? (removed ?? Buffer.alloc(0)) : outcome
      return unwritten(key, body, current?.version)
    }
    const stored = await this.#run(this.#storage.update(key, change))
    return removed === undefined ? stored : unwritten(key, removed, stored.version)
  }

  #next(sent: Event, current: CurrentEvent, options: ChangeOptions): Decision {
    const { apiVersion } = this.#group
    const writing = (): Writing => ({ manager: options.manager(), apiVersion, at: this.#timeNow() })
    const change = {
      sent: sent.metadata.managedFields,
      served: this.servedVersions,
      writing,
    }
    return this.#checkedNext(sent, current, (event) => tracked(event, current, change))
  }

  /** `owned` gives the event its owners. */
  #checkedNext(
    sent: Event,
    { stored, old }: CurrentEvent,
    owned: (event: Event) => Event,
  ): Decision {
    checkVersion(this.names, stored, sent.metadata.resourceVersion)
    const event = owned(changedEvent(sent, old))
    this.#check(event, this.#group.updateProblems(event, old))
    return { event, isRemoved: isReleased(event) }
  }

  /** Of an update or an apply; what it says about versions must at least be one. */
  #asNew(key: EventKey, sent: Event): Event {
    readVersion(sent.metadata.resourceVersion ?? '')
    const event = newEvent(sent, { ...this.#birth(key.namespace), name: key.name })
    this.#check(event, this.#group.createProblems(event))
    return event
  }

  async #createNamed(
    namespace: string,
    sent: Event,
    options: WriteOptions & { readonly name: string | undefined },
  ): Promise<ShownEvent> {
    const event = newEvent(sent, { ...this.#birth(namespace), name: options.name })
    this.#check(event, this.#group.createProblems(event))
    const key = { namespace, name: event.metadata.name ?? '' }
    const body = encodeEvent(event)
    this.#limit(key, { event, body, stored: undefined }, options)
    try {
      return await (options.isDryRun ? this.#tryInsert(key, body) : this.#storage.create(key, body))
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      if (error.kind !== 'exists' && !isUnreadable(error)) {
        throw statusOfStorageError(error, this.names, { isRead: options.isDryRun })
      }
      const { current, reason } = error
      throw alreadyExists(this.names, key.name, {
        isBeingDeleted: isBeingDeleted(current),
        reason,
      })
    }
  }

  /** All of a create but the writing. */
  async #tryInsert(key: EventKey, body: Buffer): Promise<ShownEvent> {
    const current = await this.#find(key)
    if (current === undefined) return unwritten(key, body, undefined)
    throw new StorageError({ kind: 'exists', message: 'there is one already', key, current })
  }

  async #find(key: EventKey): Promise<StoredEvent | undefined> {
    try {
      return await this.#storage.get(key, { signal: new AbortController().signal })
    } catch (error) {
      if (error instanceof StorageError && error.kind === 'missing') return undefined
      throw error
    }
  }

  #check(event: Event, problems: readonly FieldError[]): void {
    if (problems.length > 0) {
      throw invalid({ kind: 'Event', name: event.metadata.name ?? '' }, problems)
    }
  }

  /**
   * The limits of what is about to be stored. Last, so that nobody is charged for what could not be
   * written anyway. An event that is too large already, from before the limit, may become smaller.
   */
  #limit(
    { namespace, name }: EventKey,
    { event, body, stored }: Written,
    { isDryRun, admit }: WriteOptions,
  ): void {
    const bytesMax = Math.max(this.#eventBytesMax, (stored?.body.length ?? 0) - 1)
    if (body.length > bytesMax) {
      throw entityTooLarge(
        `the event would have ${body.length} bytes, limit is ${this.#eventBytesMax}`,
        undefined,
      )
    }
    const keyBytes = namespace.length + name.length
    if (!isDryRun) admit?.(event, body.length + keyBytes + STORED_OVERHEAD_BYTES)
  }

  #birth(namespace: string): { namespace: string; uid: string; at: string } {
    return { namespace, uid: randomUUID(), at: this.#timeNow() }
  }

  /** To the second, as such times are printed. */
  #timeNow(): string {
    const at = Math.floor(this.#now() / 1000)
    if (at !== this.#second.at) {
      const printed = `${new Date(at * 1000).toISOString().slice(0, 19)}Z`
      Object.assign(this.#second, { at, printed })
    }
    return this.#second.printed
  }

  async #run<T>(work: Promise<T>, attempt?: Attempt): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw error instanceof StorageError ? statusOfStorageError(error, this.names, attempt) : error
    }
  }
}

/** What is applied makes of an event, or of nothing, at a time as it is printed. */
export type Apply = (current: CurrentEvent | undefined, at: string) => Applied

interface Decision {
  readonly event: Event
  readonly isRemoved: boolean
  /** Marked as being deleted: no limit of what is written may prevent that. */
  readonly isDeletion?: boolean
}

interface Written {
  readonly event: Event
  readonly body: Buffer
  readonly stored: StoredEvent | undefined
}

type Decide = (current: CurrentEvent | undefined) => Decision

function isBeingDeleted(current: StoredEvent | undefined): boolean {
  return current !== undefined && readEvent(current).metadata.deletionTimestamp !== undefined
}
