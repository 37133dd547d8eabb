import type { WatchItem } from '../../../src/storage/storage.ts'
import type { Violation } from '../model/history.ts'
import { keyText, readValue } from './values.ts'

/** What was heard between two stops, in the order it came. */
export interface WatchSegment {
  readonly from: number
  readonly replica: number
  /** A change is its version; the end of a batch is the version of the batch, negative. */
  readonly heard: number[]
}

/** All that one watcher heard. */
export interface WatchLog {
  readonly id: number
  /** Undefined: all of them. */
  readonly namespace: string | undefined
  readonly segments: readonly WatchSegment[]
}

/** A change as watchers are told of it. */
export interface ToldChange {
  readonly key: string
  /** Undefined for a delete. */
  readonly value: string | undefined
  /** What the key held before, undefined for nothing. */
  readonly previous: string | undefined
}

/**
 * What all watchers together were told, once per version: they must all have been told the same,
 * so that each of them needs to keep no more than versions.
 */
export class ToldChanges {
  readonly changes: Map<number, ToldChange> = new Map()
  readonly violations: Violation[] = []

  add(item: WatchItem, watcher: number): number {
    const { version } = item.stored
    const told = toldBy(item)
    const known = this.changes.get(version)
    if (known === undefined) this.changes.set(version, told)
    else if (!isSameChange(known, told)) {
      const both = `${JSON.stringify(told)}, others ${JSON.stringify(known)}`
      const message = `watcher ${watcher} was told at version ${version} ${both}`
      this.violations.push({ kind: 'watch-unique', message })
    }
    return version
  }
}

export function isSameChange(a: ToldChange, b: ToldChange): boolean {
  return a.key === b.key && a.value === b.value && a.previous === b.previous
}

function toldBy(item: WatchItem): ToldChange {
  const key = keyText(item.stored.key)
  const state = readValue(item.stored.body)
  if (item.type === 'delete') return { key, value: undefined, previous: state }
  return { key, value: state, previous: item.previous && readValue(item.previous.body) }
}
