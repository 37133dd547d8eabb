/** Helpers of the contract tests: bounded waits, and summaries of events. */
import assert from 'node:assert/strict'
import { StorageError, type StorageErrorKind } from '../../../src/storage/errors.ts'
import { formatVersion, parseVersion, type Version } from '../../../src/storage/resource-version.ts'
import type {
  EventKey,
  EventPage,
  EventWatch,
  StoredEvent,
  WatchItem,
} from '../../../src/storage/storage.ts'
import { failure, noteOf } from '../../support/stored-events.ts'

/** A signal that never aborts. */
export const signal: AbortSignal = new AbortController().signal
export const patienceMs = 10_000

/** The first `count` items; then the watch is ended. Waits a moment for an item too many. */
export async function take(
  count: number,
  open: (end: { readonly signal: AbortSignal }) => EventWatch,
): Promise<readonly WatchItem[]> {
  const end = new AbortController()
  const taken: WatchItem[] = []
  const watch = open({ signal: end.signal })
  const taking = (async () => {
    if (count === 0) watch.requestProgress()
    for await (const { items } of watch) {
      taken.push(...items)
      if (taken.length >= count) return
    }
  })()
  await within(patienceMs, taking)
  end.abort()
  assert.equal(taken.length, count, taken.map(tell).join(', '))
  return taken
}

export async function first(watch: EventWatch): Promise<WatchItem | undefined> {
  for await (const { items } of watch) if (items[0] !== undefined) return items[0]
  return undefined
}

export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not within ${ms} ms`)), ms)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

export async function failed(
  kind: StorageErrorKind,
  promise: Promise<unknown>,
): Promise<StorageError> {
  const error = await failure(promise)
  assert.ok(error instanceof StorageError, String(error))
  assert.equal(error.kind, kind, error.message)
  return error
}

/** What two views of one event must agree on. */
export function snapshot(stored: StoredEvent): {
  readonly key: EventKey
  readonly body: string
  readonly version: Version
  readonly writtenAtMs: number
} {
  const { key, version, writtenAtMs } = stored
  return { key, version, writtenAtMs, body: stored.body.toString() }
}

export function names(page: EventPage): readonly string[] {
  return page.items.map(({ key }) => key.name)
}

export function tell(item: WatchItem): string {
  const { key } = item.stored
  const what = `${item.type} ${key.namespace}/${key.name} ${noteOf(item.stored)}`
  if (item.type === 'delete') return what
  return `${what} was ${item.previous === undefined ? 'nothing' : noteOf(item.previous)}`
}

/** Later than any version in these tests. */
export function far(version: Version): Version {
  return parseVersion(`${formatVersion(version)}000`)
}
