import { randomUUID } from 'node:crypto'
import type { Event } from '../api/event.ts'
import type { EventGroup } from '../api/event-groups.ts'
import { generatedName, RandomSuffixes } from '../api/random-suffix.ts'
import { badRequest, invalid, isStatus, StatusError } from '../api/status.ts'
import type { FieldError } from '../api/validation/field-error.ts'
import type { ShownEvent } from '../codec/event/event-bytes.ts'
import { encodeEvent } from '../codec/event/event-json.ts'
import { recorded } from '../lib/tracing/span.ts'
import { isUnreadable, StorageError } from '../storage/errors.ts'
import { beginning } from '../storage/resource-version.ts'
import type {
  EventKey,
  EventStorage,
  EventWrites,
  MarksOf,
  ReadOptions,
  StoredEvent,
} from '../storage/storage.ts'
import { placeholderEvent, unwritten } from '../storage/stored-form.ts'
import { refundFailed, type WriteAdmission } from './admission/write-admission.ts'
import type { Applied } from './apply/apply.ts'
import { type ServedVersions, type Writing, withManagedFields } from './apply/managed-fields.ts'
import { settled, tracked } from './apply/update-tracking.ts'
import {
  CreationNeeded,
  checkPreconditions,
  checkUid,
  checkVersion,
  noSuchUid,
  notDamaged,
  unknownUid,
} from './change-checks.ts'
import { type Decision, EventChanges } from './changes.ts'
import { readVersion } from './read/list-position.ts'
import {
  alreadyExists,
  inApiTerms,
  notFound,
  noUniqueName,
  type ResourceNames,
  resourceNames,
  statusOfStorageError,
} from './storage-errors.ts'
import { type CurrentEvent, keptEvent, readEvent } from './stored-event.ts'
import { afterDelete, changedEvent, isReleased, newEvent } from './strategy.ts'
import type { ChangeOptions, Deleted, DeleteOptions, Updated, WriteOptions } from './writes.ts'

/** Names that are generated for one request before it fails. */
const nameAttempts = 8

export type NamespaceScope = Pick<EventKey, 'cluster' | 'namespace'>

export interface RegistryOptions {
  readonly storage: Pick<EventStorage, 'get'>
  readonly writes: EventWrites
  /** The API group of the requests, which determines resource names and validation. */
  readonly group: EventGroup
  /** All API versions that are served. */
  readonly servedVersions?: readonly string[] | undefined
  /** The largest event that is stored. Default: what etcd accepts. */
  readonly eventBytesMax?: number | undefined
  /** Default: every write is admitted. */
  readonly admission?: Pick<WriteAdmission, 'admit'> | undefined
  /** Default: nothing is known. */
  readonly marksOf?: MarksOf | undefined
  /** Milliseconds since 1970; the source of timestamps that the server sets. */
  readonly now?: (() => number) | undefined
}

/**
 * Implements the verbs for events on top of the storage. Every failure is a StatusError with the
 * message of the API.
 */
export class EventRegistry {
  readonly names: ResourceNames
  readonly servedVersions: ServedVersions
  readonly #storage: RegistryOptions['storage']
  readonly #writes: EventWrites
  readonly #group: EventGroup
  readonly #changes: EventChanges
  readonly #marksOf: MarksOf | undefined
  readonly #now: () => number
  readonly #suffixes = new RandomSuffixes()
  /** The formatted time of the current second. */
  readonly #second: { at: number; text: string } = { at: Number.NaN, text: '' }

  constructor(options: RegistryOptions) {
    this.#storage = options.storage
    this.#writes = options.writes
    this.#now = options.now ?? Date.now
    this.#group = options.group
    this.names = resourceNames(options.group.name)
    this.#changes = new EventChanges({
      storage: options.storage,
      writes: this.#writes,
      names: this.names,
      eventBytesMax: options.eventBytesMax ?? Number.POSITIVE_INFINITY,
      admission: options.admission,
      marksOf: options.marksOf,
    })
    this.#marksOf = options.marksOf
    this.servedVersions = new Set([...(options.servedVersions ?? []), this.#group.apiVersion])
  }

  /** `versionText` is `notOlderThan` as the client sent it; the storage does not read it. */
  get(
    key: EventKey,
    options: ReadOptions & { readonly versionText?: string },
  ): Promise<ShownEvent> {
    const { notOlderThan, versionText } = options
    const found = recorded(options.span, 'storage get', (span) =>
      this.#storage.get(key, span === undefined ? options : { ...options, span }),
    )
    return inApiTerms(found, this.names, { wanted: notOlderThan, versionText, isRead: true })
  }

  async create(scope: NamespaceScope, sent: Event, options: WriteOptions): Promise<ShownEvent> {
    try {
      return await this.#createNamed(scope, sent, options)
    } catch (error) {
      refundFailed(options.writer, error)
      throw error
    }
  }

  /** Replaces an event or creates it; fails with CreationNeeded when it may not create it. */
  async update(
    key: EventKey,
    sent: Event,
    options: ChangeOptions & { readonly mayCreate: boolean },
  ): Promise<Updated> {
    return this.#changes.changeOwned(key, options, (current) => {
      checkUid(this.names, key, { sent: sent.metadata.uid, stored: current?.old.metadata.uid })
      if (current !== undefined) return this.#next(sent, current, options)
      const event = this.#asNew(key, sent)
      if (!options.mayCreate) throw new CreationNeeded()
      return { kind: 'create', event }
    })
  }

  /**
   * Replaces an event by what `patch` returns for it, starting over from the latest state when
   * another write came in between. `patch` must be pure: only the result of its last run counts.
   */
  async patch(
    key: EventKey,
    patch: (current: CurrentEvent) => Event,
    options: ChangeOptions,
  ): Promise<ShownEvent> {
    const { event } = await this.#changes.changeOwned(key, options, (current) => {
      if (current === undefined) throw notFound(this.names, key.name)
      return this.#next(patch(current), current, options)
    })
    return event
  }

  /** Applies a configuration to an event, or creates it. `apply` must be pure as well. */
  async apply(
    key: EventKey,
    apply: Apply,
    options: WriteOptions & { readonly mayCreate: boolean },
  ): Promise<Updated> {
    return this.#changes.change(key, options, (current) => {
      const { event, managedFields } = apply(current, this.#timeNow())
      if (current !== undefined) {
        return this.#checkedNext(event, current, (next) => settled(next, managedFields, current))
      }
      const { uid } = event.metadata
      if (uid !== undefined) throw noSuchUid(this.names, key, uid)
      const created = withManagedFields(this.#asNew(key, event), managedFields)
      if (!options.mayCreate) throw new CreationNeeded()
      return { kind: 'create', event: created }
    })
  }

  async delete(key: EventKey, options: DeleteOptions): Promise<Deleted> {
    try {
      return await this.#delete(key, options)
    } catch (error) {
      const cause = error instanceof StatusError ? error.cause : undefined
      const isDamaged = cause instanceof StorageError && cause.kind === 'corrupt'
      // A collection delete deletes only listed events, and a list omits damaged values.
      if (!isDamaged || options.isTarget !== undefined) throw error
      if (options.isDryRun && options.onlyDamaged !== true) throw error
      return { event: await this.#deleteDamaged(key, options), uid: '', isGone: true }
    }
  }

  /** A damaged value has only a name and a version, so a precondition on its UID fails. */
  async #deleteDamaged(key: EventKey, options: DeleteOptions): Promise<ShownEvent> {
    const { preconditions, onlyDamaged } = options
    const guard = (stored: StoredEvent): void => {
      const old = readEvent(stored)
      // Only a damaged value has no UID; this one was replaced by an event meanwhile.
      if (onlyDamaged === true && old.metadata.uid !== undefined) throw notDamaged(this.names, key)
      checkPreconditions(key, { stored, old }, preconditions)
      if (preconditions.uid !== undefined) throw unknownUid(key)
    }
    if (options.isDryRun) return placeholderEvent({ key, version: beginning, writtenAtMs: 0 })
    return inApiTerms(this.#writes.delete(key, guard), this.names)
  }

  async #delete(key: EventKey, options: DeleteOptions): Promise<Deleted> {
    const { event, decision } = await this.#changes.change(key, options, (current) => {
      if (current === undefined || options.isTarget?.(current.stored) === false) {
        throw notFound(this.names, key.name)
      }
      if (options.onlyDamaged === true) throw notDamaged(this.names, key)
      checkPreconditions(key, current, options.preconditions)
      const marked = afterDelete(current.old, this.#timeNow())
      if (marked === undefined) return { kind: 'remove', event: current.old }
      return { kind: 'mark-deleted', event: marked }
    })
    const { uid = '' } = decision.event.metadata
    return { event, uid, isGone: decision.kind === 'remove' }
  }

  #next(sent: Event, current: CurrentEvent, options: ChangeOptions): Decision {
    const { apiVersion, shownWhenEmpty } = this.#group
    const writing = (): Writing => ({ manager: options.manager(), apiVersion, at: this.#timeNow() })
    const change = {
      sent: sent.metadata.managedFields,
      served: this.servedVersions,
      writing,
      shownWhenEmpty,
    }
    return this.#checkedNext(sent, current, (event) => tracked(event, current, change))
  }

  /** `owned` returns the event with its field owners. */
  #checkedNext(
    sent: Event,
    { stored, old }: CurrentEvent,
    owned: (event: Event) => Event,
  ): Decision {
    checkVersion(this.names, stored, sent.metadata.resourceVersion)
    const event = owned(changedEvent(sent, old))
    this.#check(event, this.#group.updateProblems(event, old))
    return { kind: isReleased(event) ? 'remove' : 'update', event }
  }

  /** The event that an update or apply creates. Its resourceVersion must be valid if set. */
  #asNew(key: EventKey, sent: Event): Event {
    readVersion(sent.metadata.resourceVersion ?? '')
    const event = newEvent(sent, { ...this.#creation(key.namespace), name: key.name })
    this.#check(event, this.#group.createProblems(event))
    return event
  }

  /** If the client asks for a generated name, tries names until one is free. */
  async #createNamed(
    scope: NamespaceScope,
    sent: Event,
    options: WriteOptions,
  ): Promise<ShownEvent> {
    const { name, generateName = '' } = sent.metadata
    checkUnversioned(sent)
    const isGenerated = name === undefined && generateName !== ''
    for (let attempt = 1; ; attempt++) {
      const named = isGenerated ? generatedName(generateName, this.#suffixes.next()) : name
      const event = newEvent(sent, { ...this.#creation(scope.namespace), name: named })
      try {
        return await this.#createNew(scope, event, options)
      } catch (error) {
        const failure = this.#createFailure(error, event, options)
        if (!isGenerated || !isStatus(failure, 'AlreadyExists')) throw failure
        if (attempt === nameAttempts) throw noUniqueName(this.names, named ?? '')
      }
    }
  }

  #createNew(
    { cluster, namespace }: NamespaceScope,
    event: Event,
    options: WriteOptions,
  ): Promise<ShownEvent> {
    this.#check(event, this.#group.createProblems(event))
    const key = { cluster, namespace, name: event.metadata.name ?? '' }
    const body = encodeEvent(event)
    const kept = keptEvent(event, body, options.sentBytes)
    this.#changes.checkLimits(key, { event, body, stored: undefined }, options)
    if (options.isDryRun) return this.#dryRunCreate(key, body)
    return recorded(options.span, 'storage create', (span) =>
      this.#writes.create(key, body, { span, event: kept, ...this.#marksOf?.(cluster, event) }),
    )
  }

  #createFailure(error: unknown, { metadata }: Event, options: WriteOptions): unknown {
    if (!(error instanceof StorageError)) return error
    if (error.kind !== 'exists' && !isUnreadable(error)) {
      return statusOfStorageError(error, this.names, { isRead: options.isDryRun })
    }
    const { current, reason } = error
    return alreadyExists(this.names, metadata.name ?? '', {
      isBeingDeleted: isBeingDeleted(current),
      reason,
    })
  }

  /** Everything that a create does except the write. */
  async #dryRunCreate(key: EventKey, body: Buffer): Promise<ShownEvent> {
    const current = await this.#changes.find(key)
    if (current === undefined) return unwritten(key, body, undefined)
    throw new StorageError({ kind: 'exists', message: 'the event exists', key, current })
  }

  #check(event: Event, problems: readonly FieldError[]): void {
    if (problems.length > 0) {
      throw invalid({ kind: 'Event', name: event.metadata.name ?? '' }, problems)
    }
  }

  #creation(namespace: string): { namespace: string; uid: string; at: string } {
    return { namespace, uid: randomUUID(), at: this.#timeNow() }
  }

  /** The current time as a timestamp, with a precision of one second. */
  #timeNow(): string {
    const at = Math.floor(this.#now() / 1000)
    if (at !== this.#second.at) {
      const text = `${new Date(at * 1000).toISOString().slice(0, 19)}Z`
      Object.assign(this.#second, { at, text })
    }
    return this.#second.text
  }
}

/** Applies a configuration to an event, if there is one. `at` is the current timestamp. */
export type Apply = (current: CurrentEvent | undefined, at: string) => Applied

/** A string that is not a version is ignored, like other fields that the server sets. */
function checkUnversioned({ metadata: { resourceVersion = '' } }: Event): void {
  if (resourceVersion === '' || !/^0*[1-9][0-9]*$/.test(resourceVersion)) return
  throw badRequest('resourceVersion should not be set on objects to be created')
}

function isBeingDeleted(current: StoredEvent | undefined): boolean {
  return current !== undefined && readEvent(current).metadata.deletionTimestamp !== undefined
}
