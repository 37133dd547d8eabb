import type {
  GetOperation,
  ListOperation,
  Operation,
  Violation,
  WriteOperation,
} from './history.ts'
import { findFault, type KeyOperations } from './key-search.ts'
import { checkRealTime } from './real-time.ts'
import { gatherSightings } from './sightings.ts'

/**
 * Finds everything in a history that a linearizable store with numbered changes could not have
 * done: a store with one state at a time, where each operation takes effect between its call and
 * its response.
 *
 * Keys are checked one by one. That covers lists as well: a list is part of the history of every
 * key, at the place among the changes that its version gives.
 */
export function checkHistory(operations: readonly Operation[]): readonly Violation[] {
  const { versionOfValue, violations } = gatherSightings(operations)
  const found = [...violations, ...checkRealTime(operations)]
  const lists = operations.filter((operation) => operation.type === 'list')
  for (const list of lists) found.push(...laterThanTheirList(list))
  for (const [key, { writes, gets }] of byKey(operations)) {
    found.push(...checkKey({ key, writes, gets, lists, versionOfValue }))
  }
  return found
}

/** Separated by whether the history of the key alone is wrong, or only together with lists. */
function checkKey(operations: KeyOperations): Violation[] {
  const { key } = operations
  const fault = findFault({ ...operations, lists: [] })
  if (fault !== undefined) return [{ kind: 'not-linearizable', message: `${key}: ${fault}` }]
  const listFault = findFault(operations)
  if (listFault !== undefined) return [{ kind: 'list-not-a-cut', message: `${key}: ${listFault}` }]
  return []
}

function laterThanTheirList(list: ListOperation): Violation[] {
  return [...list.items]
    .filter(([, item]) => item.version > list.version)
    .map(([key, { version }]) => ({
      kind: 'list-not-a-cut',
      message: `#${list.id} list@${list.version} has ${key} of version ${version}`,
    }))
}

interface OfKey {
  readonly writes: WriteOperation[]
  readonly gets: GetOperation[]
}

function byKey(operations: readonly Operation[]): ReadonlyMap<string, OfKey> {
  const keys = new Map<string, OfKey>()
  const of = (key: string): OfKey => {
    const known = keys.get(key)
    if (known !== undefined) return known
    const made: OfKey = { writes: [], gets: [] }
    keys.set(key, made)
    return made
  }
  for (const operation of operations) {
    if (operation.type === 'write') of(operation.key).writes.push(operation)
    else if (operation.type === 'get') of(operation.key).gets.push(operation)
    else for (const key of operation.items.keys()) of(key)
  }
  return keys
}
