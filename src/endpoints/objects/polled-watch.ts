import { StatusError } from '../../api/status.ts'
import { pause } from '../../lib/abort.ts'
import { isAfter, type Version } from '../../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { WatchEnd } from '../events/watch-feed.ts'
import type { WatchFrameWriter } from '../events/watch-frame-writer.ts'
import type { WatchPlan } from '../request/list-plan.ts'

export interface PolledWatchOptions {
  readonly plan: WatchPlan
  /** Reads all objects that exist now and that the caller may see. */
  readonly read: () => Promise<readonly StoredEvent[]>
  readonly version: () => Version
  readonly writer: WatchFrameWriter
  readonly pollMs: number
  readonly request: AbortSignal
  /** Starts to recheck the caller's access. The callback ends the watch. */
  readonly access: (end: (why: StatusError) => void) => Disposable | undefined
  /** Called when the existing objects have been sent. */
  readonly settle: () => void
}

const pollsPerBookmark = 12

/**
 * A watch of objects that are computed when they are read: it reads them every few seconds, and
 * sends the differences. It retains the objects that it has sent.
 */
export async function* polledFrames(options: PolledWatchOptions): AsyncGenerator<Buffer> {
  const { plan, writer, version, pollMs } = options
  using end = new WatchEnd(options.request, plan.lifetimeMs)
  let refusal: StatusError | undefined
  using _access = options.access((why) => {
    refusal = why
    end.abort()
  })
  try {
    const first = await options.read()
    if (plan.initial === undefined) {
      const { from } = plan
      const isNew = ({ version }: StoredEvent) => from !== undefined && isAfter(version, from)
      yield* changes(writer, first.filter(isNew).map(changed), version())
    } else {
      const isWanted = (one: StoredEvent) => plan.selector?.matches(one) ?? true
      yield* writer.initialFrames(first.filter(isWanted))
      if (plan.hasInitialBookmark) yield writer.bookmark(version(), true)
    }
    options.settle()
    let known = byName(first)
    for (let poll = 1; ; poll++) {
      await pause(pollMs, end.signal)
      if (end.signal.aborted) break
      const now = byName(await options.read())
      yield* changes(writer, differences(known, now), version())
      known = now
      if (plan.hasBookmarks && poll % pollsPerBookmark === 0)
        yield writer.bookmark(version(), false)
    }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    yield writer.error(error)
  } finally {
    options.settle()
  }
  if (refusal !== undefined) yield writer.error(refusal)
}

type ByName = ReadonlyMap<string, StoredEvent>

function byName(objects: readonly StoredEvent[]): ByName {
  return new Map(objects.map((one) => [one.key.name, one]))
}

function* changes(
  writer: WatchFrameWriter,
  items: readonly WatchItem[],
  version: Version,
): Generator<Buffer> {
  if (items.length > 0) yield* writer.changeFrames({ items, version })
}

function changed(stored: StoredEvent): WatchItem {
  return { type: 'put', stored, previous: stored }
}

function differences(known: ByName, now: ByName): readonly WatchItem[] {
  const items: WatchItem[] = []
  for (const [name, stored] of now) {
    const previous = known.get(name)
    if (previous?.body.equals(stored.body) === true) continue
    items.push({ type: 'put', stored, previous })
  }
  for (const [name, stored] of known) if (!now.has(name)) items.push({ type: 'delete', stored })
  return items
}
