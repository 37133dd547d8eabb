import type { WatchItem } from '../../../../src/storage/storage.ts'
import type { Violation } from '../model/history.ts'
import { keyText, readValue } from './values.ts'

/** What was received between two stops, in order. */
export interface WatchSegment {
  readonly from: number
  readonly replica: number
  /** A change is its version; the end of a batch is the version of the batch, negative. */
  readonly heard: number[]
}

/** All that one watcher received. */
export interface WatchLog {
  readonly id: number
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined
  readonly segments: readonly WatchSegment[]
}

/** A change as watchers receive it. */
export interface DeliveredChange {
  readonly key: string
  /** Undefined for a delete. */
  readonly value: string | undefined
  /** The previous state of the key, undefined for none. */
  readonly previous: string | undefined
}

/**
 * The changes that all watchers together received, once per version. All must receive the same, so
 * that each watcher needs to keep no more than versions.
 */
export class DeliveredChanges {
  readonly changes: Map<number, DeliveredChange> = new Map()
  readonly violations: Violation[] = []

  add(item: WatchItem, watcher: number): number {
    const { version } = item.stored
    const delivered = deliveredBy(item)
    const known = this.changes.get(version)
    if (known === undefined) this.changes.set(version, delivered)
    else if (!isSameChange(known, delivered)) {
      const both = `${JSON.stringify(delivered)}, others ${JSON.stringify(known)}`
      const message = `watcher ${watcher} received at version ${version} ${both}`
      this.violations.push({ kind: 'watch-unique', message })
    }
    return version
  }
}

export function isSameChange(a: DeliveredChange, b: DeliveredChange): boolean {
  return a.key === b.key && a.value === b.value && a.previous === b.previous
}

function deliveredBy(item: WatchItem): DeliveredChange {
  const key = keyText(item.stored.key)
  const state = readValue(item.stored.body)
  if (item.type === 'delete') return { key, value: undefined, previous: state }
  return { key, value: state, previous: item.previous && readValue(item.previous.body) }
}
