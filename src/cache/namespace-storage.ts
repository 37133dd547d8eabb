import { throwIfAborted } from '../storage/aborted-read.ts'
import { missing, StorageError } from '../storage/errors.ts'
import { namespaceObject } from '../storage/namespace-form.ts'
import { isAfter, revisionOf, type Version, versionOfState } from '../storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventScope,
  ListOptions,
  PulledWatch,
  ReadOptions,
  ReadStorage,
  StoredEvent,
  WatchItem,
} from '../storage/storage.ts'
import type { Freshness } from './freshness.ts'
import type { EventMemory } from './memory/memory.ts'
import { ANY_CLUSTER, indexAfter, type KnownNamespace } from './memory/namespaces.ts'
import type { NamespaceLog } from './namespace-log.ts'
import type { Reflector } from './reflector.ts'

export interface NamespaceStorageOptions {
  readonly memory: EventMemory
  readonly log: NamespaceLog
  readonly freshness: Freshness
  readonly reflector: Reflector
}

/**
 * The namespaces that have events, as objects: with the versions of memory, as fresh as events, and
 * with lists at earlier versions as far back as the log of changes reaches. There are none while
 * memory is loaded, since nothing else knows them.
 */
export class NamespaceStorage implements ReadStorage {
  readonly #options: NamespaceStorageOptions

  constructor(options: NamespaceStorageOptions) {
    this.#options = options
  }

  async get(key: EventKey, options: ReadOptions): Promise<StoredEvent> {
    await this.#becomeFresh(options)
    const known = this.#options.memory.namespaces.find(key.cluster, key.name)
    if (known === undefined) throw missing(key)
    return namespaceObject(known)
  }

  async list({ cluster = ANY_CLUSTER }: EventScope, options: ListOptions): Promise<EventPage> {
    const { at, after, limit, selector, signal, lane } = options
    await this.#becomeFresh({ ...options, notOlderThan: at ?? options.notOlderThan })
    const entered = lane.enter(signal)
    if (entered !== undefined) {
      await entered
      throwIfAborted(signal)
    }
    const all = at === undefined ? this.#present(cluster) : this.#at(cluster, at)
    const version = at === undefined ? this.#options.memory.version : versionOfState(revisionOf(at))
    const items: StoredEvent[] = []
    let index = after === undefined ? 0 : indexAfter(all, after.namespace)
    using slices = lane.slices({ signal })
    for (; index < all.length && items.length < limit; index++) {
      const known = all[index]
      if (known === undefined) break
      const object = namespaceObject(known)
      if (selector === undefined || selector.matches(object)) items.push(object)
      if (!slices.isOver()) continue
      await slices.next()
      throwIfAborted(signal)
    }
    const remaining = all.length - index
    return {
      items,
      version,
      more: remaining > 0,
      remaining: selector === undefined ? remaining : undefined,
    }
  }

  watch(
    { cluster = ANY_CLUSTER }: EventScope,
    options: { readonly from: Version; readonly signal: AbortSignal },
  ): PulledWatch {
    const { log, reflector } = this.#options
    return log.watch(cluster, {
      ...options,
      isCurrent: () => reflector.isCurrent,
      requestProgress: () => reflector.requestProgress(),
    })
  }

  currentVersion({ signal }: { readonly signal: AbortSignal }): Promise<Version> {
    return this.#options.freshness.currentVersion(signal)
  }

  #present(cluster: string): readonly KnownNamespace[] {
    return this.#options.memory.namespaces.list(cluster)
  }

  #at(cluster: string, at: Version): readonly KnownNamespace[] {
    const version = versionOfState(revisionOf(at))
    const present = this.#present(cluster)
    if (!isAfter(this.#options.memory.version, version)) return present
    return before(present, this.#options.log.changesAfter(version, cluster), version)
  }

  async #becomeFresh(options: ReadOptions): Promise<void> {
    if (await this.#options.freshness.isFresh(options)) return
    const reason = 'namespaces are known only once all events are loaded, which is under way'
    throw new StorageError({ kind: 'unavailable', message: reason, reason })
  }
}

/**
 * The namespaces as they were at a version; `changes` are those since then. When a namespace became
 * known is not in the log, so one that is gone has the version of the list.
 */
function before(
  present: readonly KnownNamespace[],
  changes: readonly WatchItem[],
  version: Version,
): readonly KnownNamespace[] {
  if (changes.length === 0) return present
  const byName = new Map(present.map((one) => [one.name, one]))
  for (const { type, stored } of changes.toReversed()) {
    const { cluster, name } = stored.key
    if (type === 'put') byName.delete(name)
    else byName.set(name, { cluster, name, version, firstWrittenMs: stored.writtenAtMs })
  }
  return [...byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
}
