/**
 * The promises of a watch, one check for each, against the history of etcd.
 *
 * - ordered: versions rise, across stops too
 * - unique: no change comes twice
 * - true: what comes is a change that happened, as it happened
 * - atomic: the changes of one transaction come in one batch
 * - reliable: nothing is missing between where it began and where it ended
 * - resumable: a watch from a version begins with the first change after it
 * - bookmarkable: everything up to the version of a batch was delivered; the version never goes
 *   back
 */
import type { Violation } from '../model/history.ts'
import {
  type DeliveredChange,
  isSameChange,
  type WatchLog,
  type WatchSegment,
} from '../traffic/watch-log.ts'
import type { Change } from './etcd-history.ts'

export function checkWatch(log: WatchLog, history: History): readonly Violation[] {
  const found = [
    ...checkOrder(log),
    ...checkAtomic(log, history),
    ...checkReliable(log, history),
    ...checkResumable(log, history),
    ...checkBookmarks(log),
  ]
  return found.map(({ kind, message }) => ({ kind, message: `watcher ${log.id}: ${message}` }))
}

/** Every change that any watcher received, by version, is a change of etcd. */
export function checkDelivered(
  delivered: ReadonlyMap<number, DeliveredChange>,
  history: History,
): readonly Violation[] {
  const violations: Violation[] = []
  for (const [version, change] of delivered) {
    const real = history.at(version)
    if (real !== undefined && isSameChange(real, change)) continue
    const message = `at version ${version} ${JSON.stringify(change)}, in etcd ${JSON.stringify(real)}`
    violations.push({ kind: 'watch-true', message })
  }
  return violations
}

/** All changes, by version and by scope. */
export class History {
  readonly all: readonly Change[]
  readonly #byVersion: ReadonlyMap<number, Change>
  readonly #byNamespace = new Map<string | undefined, readonly number[]>()

  constructor(changes: readonly Change[]) {
    this.all = changes
    this.#byVersion = new Map(changes.map((change) => [change.version, change]))
  }

  at(version: number): Change | undefined {
    return this.#byVersion.get(version)
  }

  /** The versions of all changes in scope, rising. */
  versions(namespace: string | undefined): readonly number[] {
    const known = this.#byNamespace.get(namespace)
    if (known !== undefined) return known
    const start = namespace === undefined ? '' : `${namespace}/`
    const versions = this.all.filter(({ key }) => key.startsWith(start)).map((c) => c.version)
    this.#byNamespace.set(namespace, versions)
    return versions
  }

  /** How many changes in scope there are up to this version. */
  countUpTo(namespace: string | undefined, version: number): number {
    const versions = this.versions(namespace)
    let low = 0
    let high = versions.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((versions[middle] ?? 0) <= version) low = middle + 1
      else high = middle
    }
    return low
  }
}

function checkOrder({ segments }: WatchLog): Violation[] {
  const violations: Violation[] = []
  const known = new Set<number>()
  let last = Number.NEGATIVE_INFINITY
  for (const version of segments.flatMap(changesIn)) {
    if (known.has(version)) {
      violations.push({ kind: 'watch-unique', message: `${version} came twice` })
    } else if (version < last) {
      violations.push({ kind: 'watch-ordered', message: `${version} came after ${last}` })
    }
    known.add(version)
    last = version
  }
  return violations
}

function checkAtomic({ namespace, segments }: WatchLog, history: History): Violation[] {
  const violations: Violation[] = []
  for (const segment of segments) {
    for (const batch of wholeBatches(segment)) {
      const last = batch.at(-1)
      if (last === undefined) continue
      const endOfRevision = Math.floor(last / 1000) * 1000 + 999
      const rest = history.countUpTo(namespace, endOfRevision) - history.countUpTo(namespace, last)
      if (rest === 0) continue
      const message = `a batch ended at ${last}, ${rest} changes before the end of the transaction`
      violations.push({ kind: 'watch-atomic', message })
    }
  }
  return violations
}

/** Everything in scope between the first start and the last position, whatever the order. */
function checkReliable({ namespace, segments }: WatchLog, history: History): Violation[] {
  const first = segments[0]
  if (first === undefined) return []
  const heard = new Set(segments.flatMap(changesIn))
  const end = segments.reduce((most, segment) => Math.max(most, endOf(segment)), first.from)
  const owed = history
    .versions(namespace)
    .slice(history.countUpTo(namespace, first.from), history.countUpTo(namespace, end))
  const missing = owed.filter((version) => !heard.has(version))
  if (missing.length === 0) return []
  const some = missing.slice(0, 5).join(', ')
  const message = `${missing.length} changes were not received in (${first.from}, ${end}]: ${some}`
  return [{ kind: 'watch-reliable', message }]
}

function checkResumable({ namespace, segments }: WatchLog, history: History): Violation[] {
  const violations: Violation[] = []
  for (const segment of segments) {
    const [heard] = changesIn(segment)
    const owed = history.versions(namespace)[history.countUpTo(namespace, segment.from)]
    if (heard === undefined || heard === owed) continue
    const message = `from ${segment.from} at replica ${segment.replica} it began with ${heard}, not ${owed}`
    violations.push({ kind: 'watch-resumable', message })
  }
  return violations
}

function checkBookmarks({ segments }: WatchLog): Violation[] {
  return segments.flatMap(brokenMarks)
}

/** The start position counts as delivered. */
function brokenMarks({ from, heard }: WatchSegment): Violation[] {
  const violations: Violation[] = []
  let mark = from
  let last = from
  for (const entry of heard) {
    const version = Math.abs(entry)
    const isMark = entry < 0
    const isBroken = isMark ? version < last : version <= mark
    if (isBroken) {
      const message = isMark
        ? `progress ${version} after ${last}`
        : `${version} after progress ${mark}`
      violations.push({ kind: 'watch-bookmarkable', message })
    }
    last = Math.max(last, version)
    if (isMark) mark = last
  }
  return violations
}

function changesIn({ heard }: WatchSegment): readonly number[] {
  return heard.filter((entry) => entry > 0)
}

/** The batches that were received to their end, as versions of changes. */
function wholeBatches({ heard }: WatchSegment): readonly (readonly number[])[] {
  const batches: number[][] = []
  let batch: number[] = []
  for (const entry of heard) {
    if (entry > 0) {
      batch.push(entry)
      continue
    }
    batches.push(batch)
    batch = []
  }
  return batches
}

function endOf({ from, heard }: WatchSegment): number {
  return heard.reduce((most, entry) => Math.max(most, Math.abs(entry)), from)
}
