/**
 * Reads that may return an older state must return a state that existed: a complete one, no older
 * than requested. Lists of the newest state are checked here as well.
 */
import type { Operation, Seen, Violation } from '../model/history.ts'
import type { OldRead } from '../traffic/record.ts'
import type { Change } from './etcd-history.ts'
import type { History } from './watches.ts'

type Items = ReadonlyMap<string, NonNullable<Seen>>

export function checkOldReads(
  reads: readonly OldRead[],
  operations: readonly Operation[],
  history: History,
): readonly Violation[] {
  const timeline = new Timeline(history.all)
  const violations: Violation[] = []
  const report = (id: number, fault: string | undefined): void => {
    if (fault !== undefined) violations.push({ kind: 'untrue-read', message: `#${id} ${fault}` })
  }
  for (const read of reads) report(read.id, faultOf(read, timeline))
  for (const operation of operations) {
    if (operation.type !== 'list') continue
    report(operation.id, listFault(operation.version, operation.items, timeline))
  }
  return violations
}

function faultOf(read: OldRead, timeline: Timeline): string | undefined {
  switch (read.type) {
    case 'get':
      if (timeline.heldSince(read.key, read.notOlderThan, read.seen)) return undefined
      return `${read.key} held no ${read.seen?.value ?? 'nothing'} since ${read.notOlderThan}`
    case 'list':
      if (read.version < read.notOlderThan) {
        return `list@${read.version} is older than ${read.notOlderThan}`
      }
      return listFault(read.version, read.items, timeline)
    case 'list-at': {
      const whole = Math.floor(read.at / 1000) * 1000 + 999
      if (read.version !== whole) return `list at ${read.at} has version ${read.version}`
      return listFault(read.version, read.items, timeline)
    }
  }
}

function listFault(version: number, items: Items, timeline: Timeline): string | undefined {
  for (const key of new Set([...timeline.keys, ...items.keys()])) {
    const real = timeline.heldAt(key, version)
    const listed = items.get(key)
    if (real?.version === listed?.version && real?.value === listed?.value) continue
    return `list@${version}: ${key} is ${listed?.value}, in etcd it was ${real?.value}`
  }
  return undefined
}

/** The state of each key at each version. */
class Timeline {
  readonly #changes = new Map<string, Change[]>()

  constructor(changes: readonly Change[]) {
    for (const change of changes) {
      const known = this.#changes.get(change.key)
      if (known === undefined) this.#changes.set(change.key, [change])
      else known.push(change)
    }
  }

  get keys(): Iterable<string> {
    return this.#changes.keys()
  }

  heldAt(key: string, version: number): Seen {
    return stateAfter(this.#changes.get(key)?.findLast((change) => change.version <= version))
  }

  /** Whether the key had this state at some moment from `version` on. */
  heldSince(key: string, version: number, seen: Seen): boolean {
    const later = this.#changes.get(key)?.filter((change) => change.version > version) ?? []
    const states = [this.heldAt(key, version), ...later.map(stateAfter)]
    return states.some((state) => state?.version === seen?.version && state?.value === seen?.value)
  }
}

function stateAfter(change: Change | undefined): Seen {
  if (change?.value === undefined) return undefined
  return { value: change.value, version: change.version }
}
