import { isAfter, type Version } from '../../storage/resource-version.ts'
import type { EventKey, StoredEvent } from '../../storage/storage.ts'
import type { StoredSize, StoredSizes } from '../../storage/stored-sizes.ts'
import { storedBytes } from '../../storage/trailer.ts'

/** Stands for a cluster: its namespaces are those that have events in any cluster. */
export const ANY_CLUSTER = '*'

/** A namespace that has events. */
export interface KnownNamespace {
  readonly cluster: string
  readonly name: string
  /** The version of the event that made it known; the oldest version of those that were loaded. */
  readonly version: Version
  /** The write time of that event. */
  readonly firstWrittenMs: number
}

/** A namespace got its first event, or lost its last one. */
export interface NamespaceChange {
  readonly type: 'put' | 'delete'
  readonly namespace: KnownNamespace
  readonly version: Version
}

interface Entry extends KnownNamespace {
  version: Version
  firstWrittenMs: number
  events: number
  /** The size of their bodies; not counted for all clusters together. */
  bytes: number
}

type AddedEvent = Pick<StoredEvent, 'key' | 'version' | 'writtenAtMs' | 'body' | 'trailer'>

/**
 * Counts the events of each namespace of each cluster, and their bytes, so that namespaces are
 * listed, and budgets compared, without a search. Records the changes while memory follows the store;
 * while memory is loaded it is a mixture of two states, and nothing is recorded.
 */
export class NamespaceCounts {
  readonly #clusters = new Map<string, ClusterNamespaces>()
  #changes: NamespaceChange[] = []
  #isRecording = true

  /** The sorted namespaces of a cluster. The array does not change later. */
  list(cluster: string): readonly KnownNamespace[] {
    return this.#clusters.get(cluster)?.sorted() ?? []
  }

  find(cluster: string, name: string): KnownNamespace | undefined {
    return this.#clusters.get(cluster)?.byName.get(name)
  }

  /** How many namespaces have events, of all clusters. */
  get count(): number {
    let count = 0
    for (const [cluster, { byName }] of this.#clusters) {
      if (cluster !== ANY_CLUSTER) count += byName.size
    }
    return count
  }

  /** The number of events by cluster, for clusters that have events. */
  *events(): Generator<readonly [cluster: string, events: number]> {
    for (const [cluster, { events }] of this.#clusters) {
      if (cluster !== ANY_CLUSTER) yield [cluster, events]
    }
  }

  /** The sizes of all namespaces and clusters, as long as the counts are those of the store. */
  sizesWhile(isKnown: () => boolean): StoredSizes {
    return {
      all: () => (isKnown() ? this.#sizes() : undefined),
      of: (cluster, namespace) => (isKnown() ? this.#sizeOf(cluster, namespace) : undefined),
    }
  }

  /** An event exists that did not exist before. */
  added(event: AddedEvent): void {
    this.#add(event.key.cluster, event)
    this.#add(ANY_CLUSTER, event)
    this.resized(event.key, storedBytes(event))
  }

  /** An event grew by this many bytes, or shrank if negative. */
  resized({ cluster, namespace }: EventKey, bytes: number): void {
    const known = this.#clusters.get(cluster)
    const entry = known?.byName.get(namespace)
    if (known === undefined || entry === undefined) return
    known.bytes += bytes
    entry.bytes += bytes
  }

  /** An event no longer exists. `version` is that of the delete, `bytes` its size. */
  removed(key: EventKey, version: Version, bytes: number): void {
    const { cluster, namespace } = key
    this.resized(key, -bytes)
    this.#remove(cluster, namespace, version)
    this.#remove(ANY_CLUSTER, namespace, version)
  }

  /** Loading begins: changes are not recorded until `follow`. */
  suspend(): void {
    this.#isRecording = false
    this.#changes = []
  }

  follow(): void {
    this.#isRecording = true
  }

  /** The changes since the last call. */
  takeChanges(): readonly NamespaceChange[] {
    if (this.#changes.length === 0) return NO_CHANGES
    const changes = this.#changes
    this.#changes = []
    return changes
  }

  *#sizes(): Generator<StoredSize> {
    for (const [cluster, known] of this.#clusters) {
      if (cluster === ANY_CLUSTER) continue
      yield { cluster, namespace: undefined, events: known.events, bytes: known.bytes }
      for (const [namespace, { events, bytes }] of known.byName) {
        yield { cluster, namespace, events, bytes }
      }
    }
  }

  #sizeOf(cluster: string, namespace: string | undefined): StoredSize {
    const known = this.#clusters.get(cluster)
    const found = namespace === undefined ? known : known?.byName.get(namespace)
    return { cluster, namespace, events: found?.events ?? 0, bytes: found?.bytes ?? 0 }
  }

  #add(cluster: string, { key, version, writtenAtMs }: AddedEvent): void {
    let known = this.#clusters.get(cluster)
    if (known === undefined) {
      known = new ClusterNamespaces()
      this.#clusters.set(cluster, known)
    }
    known.events++
    const entry = known.byName.get(key.namespace)
    if (entry === undefined) {
      const { namespace: name } = key
      const counts = { firstWrittenMs: writtenAtMs, events: 1, bytes: 0 }
      const added: Entry = { cluster, name, version, ...counts }
      known.insert(added)
      if (this.#isRecording) this.#changes.push({ type: 'put', namespace: added, version })
      return
    }
    entry.events++
    // Events are loaded in the order of their keys, not of their versions.
    if (this.#isRecording) return
    if (isAfter(entry.version, version)) entry.version = version
    entry.firstWrittenMs = Math.min(entry.firstWrittenMs, writtenAtMs)
  }

  #remove(cluster: string, namespace: string, version: Version): void {
    const known = this.#clusters.get(cluster)
    const entry = known?.byName.get(namespace)
    if (known === undefined || entry === undefined) {
      throw new Error(`no events are counted in namespace ${namespace} of cluster ${cluster}`)
    }
    known.events--
    entry.events--
    if (entry.events > 0) return
    known.delete(entry)
    if (known.events === 0) this.#clusters.delete(cluster)
    if (this.#isRecording) this.#changes.push({ type: 'delete', namespace: entry, version })
  }
}

const NO_CHANGES: readonly NamespaceChange[] = []

/** The namespaces of one cluster, by name and sorted. */
class ClusterNamespaces {
  readonly byName = new Map<string, Entry>()
  events = 0
  bytes = 0
  #sorted: Entry[] = []
  /** A reader has the array: it is copied before the next change. */
  #isShared = false

  sorted(): readonly Entry[] {
    this.#isShared = true
    return this.#sorted
  }

  insert(entry: Entry): void {
    this.byName.set(entry.name, entry)
    this.#own().splice(indexAfter(this.#sorted, entry.name), 0, entry)
  }

  delete({ name }: Entry): void {
    this.byName.delete(name)
    this.#own().splice(indexAfter(this.#sorted, name) - 1, 1)
  }

  #own(): Entry[] {
    if (this.#isShared) this.#sorted = this.#sorted.slice()
    this.#isShared = false
    return this.#sorted
  }
}

/** How many of the sorted namespaces have this name or one before it. */
export function indexAfter(sorted: readonly KnownNamespace[], name: string): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle]?.name ?? '') <= name) low = middle + 1
    else high = middle
  }
  return low
}
