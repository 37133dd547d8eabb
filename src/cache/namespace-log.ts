import type { Clock } from '../lib/clock.ts'
import type { Lane } from '../lib/run-queue.ts'
import { StorageError } from '../storage/errors.ts'
import { namespaceObject } from '../storage/namespace-form.ts'
import { beginning, isAfter, type Version } from '../storage/resource-version.ts'
import type { PulledWatch, WatchItem } from '../storage/storage.ts'
import type { NamespaceChange } from './memory/namespaces.ts'
import { Cursor } from './watch/cursor.ts'
import { FanOut } from './watch/fan-out.ts'
import { History, type HistoryBounds } from './watch/history.ts'

/** Each change may be recorded twice: for its cluster, and for all clusters. */
const bounds: HistoryBounds = { changesMax: 10_000, bytesMax: 16 * 1024 * 1024 }

/**
 * Recent changes to the set of namespaces that have events, and the watches of that set. Older changes
 * are stored nowhere: a watch from before the log gets `compacted`, and its client lists again.
 */
export class NamespaceLog {
  readonly #history: History
  readonly #fanOut: FanOut

  constructor(clock: Clock, lane: Lane) {
    this.#history = new History(bounds, beginning, clock)
    this.#fanOut = new FanOut(this.#history, clock, lane)
  }

  /** Appends changes that memory has applied up to `version`. */
  reached(changes: readonly NamespaceChange[], version: Version): void {
    this.#history.append(changes.map(itemOf), version)
    // Waiting watches need the version even if nothing changed; most servers have no such watches.
    if (changes.length > 0 || this.#fanOut.waitingCount > 0) this.#fanOut.changed()
  }

  /** Starts over at this version after a load, since the changes before it are unknown. */
  restarted(version: Version): void {
    this.#history.restart(version)
    this.#fanOut.restarted()
  }

  /** The changes of a cluster after a version. Fails with `compacted` when not all are known. */
  changesAfter(version: Version, cluster: string): readonly WatchItem[] {
    const history = this.#history
    if (isAfter(history.start, version)) throw compactedError()
    const until = { position: history.head, version: history.version }
    const scope = { cluster, namespace: undefined }
    const items: WatchItem[] = []
    for (let position = history.positionAfter(version); position < until.position; ) {
      const slice = history.read(position, { scope, enough: Number.POSITIVE_INFINITY, until })
      items.push(...slice.items)
      position = slice.end
    }
    return items
  }

  watch(
    cluster: string,
    options: {
      readonly from: Version
      readonly signal: AbortSignal
      readonly isCurrent: () => boolean
      readonly requestProgress: () => void
    },
  ): PulledWatch {
    return new Cursor({
      ...options,
      scope: { cluster, namespace: undefined },
      history: this.#history,
      fanOut: this.#fanOut,
      catchUp: async () => {
        throw compactedError()
      },
    })
  }
}

function itemOf({ type, namespace, version }: NamespaceChange): WatchItem {
  const stored = namespaceObject({ ...namespace, version })
  return type === 'put' ? { type, stored, previous: undefined } : { type, stored }
}

function compactedError(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'the changes of namespaces after this version are no longer available',
  })
}
