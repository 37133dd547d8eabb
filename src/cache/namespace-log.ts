import type { Clock } from '../lib/clock.ts'
import type { Lane } from '../lib/run-queue.ts'
import { StorageError } from '../storage/errors.ts'
import { namespaceObject } from '../storage/namespace-form.ts'
import { beginning, isAfter, type Version } from '../storage/resource-version.ts'
import type { PulledWatch, WatchItem } from '../storage/storage.ts'
import type { NamespaceChange } from './memory/namespaces.ts'
import { Cursor } from './watch/cursor.ts'
import { FanOut } from './watch/fan-out.ts'
import { History } from './watch/history.ts'
import type { HistoryBounds } from './watch/history-bounds.ts'

/** Namespaces change rarely: this is days of most clusters. */
const bounds: HistoryBounds = { changesMax: 10_000, bytesMax: 16 * 1024 * 1024 }

/**
 * The recent changes of namespaces, and the watches of them: a history and a fan-out of their own.
 * What is older than the log is not known anywhere, so a watch from before it gets `compacted`, and
 * its client lists again.
 */
export class NamespaceLog {
  readonly #history: History
  readonly #fanOut: FanOut

  constructor(clock: Clock, lane: Lane) {
    this.#history = new History(bounds, beginning, { clock })
    this.#fanOut = new FanOut(this.#history, clock, lane)
  }

  /** Memory has applied these changes, and is at this version now. */
  reached(changes: readonly NamespaceChange[], version: Version): void {
    this.#history.append(changes.map(itemOf), version)
    // Most batches of events change no namespace, and most servers have no watch of namespaces.
    if (changes.length > 0 || this.#fanOut.waitingCount > 0) this.#fanOut.changed()
  }

  /** Memory was loaded: the changes up to this version are not known. */
  restarted(version: Version): void {
    this.#history.restart(version)
    this.#fanOut.restarted()
  }

  /** The changes of a cluster after a version. Fails with `compacted` when not all are known. */
  changesAfter(version: Version, cluster: string): readonly WatchItem[] {
    const history = this.#history
    if (isAfter(history.start, version)) throw forgotten()
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
        throw forgotten()
      },
    })
  }
}

function itemOf({ type, namespace, version }: NamespaceChange): WatchItem {
  const stored = namespaceObject({ ...namespace, version })
  return type === 'put' ? { type, stored, previous: undefined } : { type, stored }
}

function forgotten(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message: 'the changes of namespaces after this version are not known',
  })
}
