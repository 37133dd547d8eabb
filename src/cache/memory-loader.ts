/**
 * Loads all events of the store into memory, page by page at one version.
 *
 * Memory that already has events is not cleared but changed into what the pages say: most events
 * are the same, and are neither copied nor replaced. While this runs, memory is a mixture of two
 * states.
 */

import type { InLane, Slices } from '../lib/run-queue.ts'
import { OtherHistoryError, StorageError } from '../storage/errors.ts'
import { pathOf } from '../storage/event-scope.ts'
import { isAfter, revisionOf, type Version } from '../storage/resource-version.ts'
import type { ConnectionNumber, EventPage, StoredEvent, Unreadable } from '../storage/storage.ts'
import type { FollowedStorage } from './followed-storage.ts'
import { EVENT_OVERHEAD_BYTES, NAMESPACE_OVERHEAD_BYTES } from './memory/event-overhead.ts'
import type { EventMemory } from './memory/memory.ts'
import { orderKey, viewOf } from './memory/order-key.ts'

/**
 * The events take more memory than they may. None is in memory, but all have been read: values that
 * are not events were reported.
 */
export class EventsExceedMemory extends Error {
  override readonly name = 'EventsExceedMemory'
  /** What all events would take in memory. */
  readonly bytes: number
  readonly bytesMax: number

  constructor(bytes: number, bytesMax: number) {
    super(`the events take ${bytes} bytes, and may take ${bytesMax}`)
    this.bytes = bytes
    this.bytesMax = bytesMax
  }
}

/** What was loaded. */
export interface Loaded {
  readonly version: Version
  /** All pages came over connections up to this one. */
  readonly connectionMax: ConnectionNumber
  /** Keys whose values are not events, by `pathOf`. */
  readonly unreadable: Map<string, Unreadable>
}

/**
 * Fails with `compacted` when the load has to start again, and with an OtherHistoryError when the
 * store is at an earlier version than memory was. With more than `bytesMax` it empties memory, and
 * fails with EventsExceedMemory once it has read everything.
 */
export async function loadMemory(
  source: FollowedStorage,
  memory: EventMemory,
  { lane, signal, bytesMax }: InLane & { readonly bytesMax: number },
): Promise<Loaded> {
  const connectionMax = await source.connected(signal)
  memory.forgetStates()
  const isMerged = memory.count > 0
  let after: Buffer = Buffer.alloc(0)
  let version: Version = memory.version
  const unreadable = new Map<string, Unreadable>()
  const cost = new LoadCost()
  for await (const page of source.readAll({ lane, signal, isPatient: true })) {
    if (page.connection > connectionMax) throw reconnected()
    // Opened for each page, since the wait for the next one takes no CPU time.
    using slices = lane.slices({ signal })
    version = page.version
    for (const value of page.unreadable ?? []) unreadable.set(pathOf(value.key), value)
    cost.add(page.items)
    if (cost.bytes > bytesMax) await removeBetween(memory, { ...everything, slices })
    else if (isMerged) after = await merge(memory, page, { after, slices })
    else await add(memory, page, slices)
  }
  if (cost.bytes > bytesMax) throw new EventsExceedMemory(cost.bytes, bytesMax)
  if (isAfter(memory.version, version)) throw wentBack(memory.version, version)
  return { version, connectionMax, unreadable }
}

/** What events take in memory. They are added in the order of their keys. */
class LoadCost {
  bytes = 0
  #namespace: string | undefined
  #cluster: string | undefined

  add(events: readonly StoredEvent[]): void {
    for (const { key, body } of events) {
      this.bytes += body.length + EVENT_OVERHEAD_BYTES
      if (key.namespace === this.#namespace && key.cluster === this.#cluster) continue
      this.bytes += NAMESPACE_OVERHEAD_BYTES
      this.#namespace = key.namespace
      this.#cluster = key.cluster
    }
  }
}

/** Nothing in memory or in any client can be trusted: the store will assign versions again. */
export function wentBack(known: Version, newest: Version): Error {
  return new OtherHistoryError(
    `the store went back from revision ${revisionOf(known)} to ${revisionOf(newest)}: was it restored from a snapshot?`,
  )
}

function reconnected(): StorageError {
  return new StorageError({
    kind: 'compacted',
    message:
      'the connection changed while all events were read: the new one may lead to another history',
  })
}

interface MergeOptions {
  readonly after: Buffer
  readonly slices: Slices
}

/** Into a memory that was empty. */
async function add(memory: EventMemory, page: EventPage, slices: Slices): Promise<void> {
  for (const stored of page.items) {
    memory.put(stored)
    if (slices.isOver()) await slices.next()
  }
}

/**
 * Makes memory equal to the page between `after` and the last key of the page. Returns that last
 * key, after which the next page continues.
 */
async function merge(
  memory: EventMemory,
  page: EventPage,
  { after, slices }: MergeOptions,
): Promise<Buffer> {
  const { table } = memory
  let passed = after
  for (const stored of page.items) {
    const key = orderKey(stored.key)
    await removeBetween(memory, { after: passed, before: key, slices })
    const known = memory.find(key)
    // The same version may belong to another event in another history.
    const isSame =
      known !== undefined &&
      table.versionOf(known) === stored.version &&
      table.read(known).body.equals(stored.body)
    if (!isSame) memory.put(stored)
    passed = key
    if (slices.isOver()) await slices.next()
  }
  if (!page.more) await removeBetween(memory, { after: passed, before: undefined, slices })
  return passed
}

const everything = { after: Buffer.alloc(0), before: undefined }

/** Removes all events between the two keys, neither included. */
async function removeBetween(
  memory: EventMemory,
  { after, before, slices }: MergeOptions & { readonly before: Buffer | undefined },
): Promise<void> {
  const { table } = memory
  const from = viewOf(after)
  const to = before === undefined ? undefined : viewOf(before)
  for (;;) {
    const { byKey } = memory.peek()
    const index = byKey.rank((slot) => (table.compareKey(slot, from) <= 0 ? -1 : 1))
    if (index === byKey.size) return
    const { run, offset } = byKey.runAt(index)
    const slot = run.slots[offset] ?? 0
    if (to !== undefined && table.compareKey(slot, to) >= 0) return
    memory.remove(slot)
    if (slices.isOver()) await slices.next()
  }
}
