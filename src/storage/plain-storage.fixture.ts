import { missing, StorageError } from './errors.ts'
import { pathOf, scopePath } from './event-scope.ts'
import { versionOfChange, versionOfState } from './resource-version.ts'
import type {
  Change,
  EventKey,
  EventPage,
  EventScope,
  ListOptions,
  StoredEvent,
  UpdateOptions,
} from './storage.ts'
import { newStateOf, prepareValue, StoredBody, trailerAfter, withVersion } from './stored-form.ts'

/** Storage in a map, with one leader key for fences, for tests of code that uses storage. */
export class PlainStorage {
  readonly events: Map<string, StoredEvent> = new Map()
  /** The fence that holds now. */
  leader = 1
  revision = 100
  /** Every write as it is applied. */
  readonly history: { readonly path: string; readonly stored: StoredEvent | undefined }[] = []
  /** Runs before a write is applied: may wait, or throw the error of the write. */
  before: (key: EventKey) => Promise<void> = async () => {}

  async get(key: EventKey): Promise<StoredEvent> {
    const stored = this.events.get(pathOf(key))
    if (stored === undefined) throw missing(key)
    return stored
  }

  async list(scope: EventScope, options: ListOptions): Promise<EventPage> {
    const { after, limit } = options
    const start = scopePath(scope)
    const from = after === undefined ? '' : pathOf(after)
    const found = [...this.events]
      .filter(([path]) => path.startsWith(start) && path > from)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, stored]) => stored)
    const version = versionOfState(this.revision)
    const items = found.slice(0, limit)
    return { items, version, more: found.length > limit, remaining: found.length - items.length }
  }

  async update(key: EventKey, change: Change, options: UpdateOptions = {}): Promise<StoredEvent> {
    await this.before(key)
    const path = pathOf(key)
    const current = this.events.get(path)
    const wanted = change(current)
    if (wanted === undefined || (wanted === 'remove' && current === undefined)) {
      if (current === undefined) throw missing(key)
      return current
    }
    if (options.fence !== undefined && options.fence.revision !== this.leader) {
      throw new StorageError({ kind: 'fenced', message: 'another replica leads', key })
    }
    const version = versionOfChange(++this.revision, 0)
    if (wanted === 'remove') {
      this.events.delete(path)
      this.history.push({ path, stored: undefined })
      return withVersion(current as StoredEvent, version)
    }
    const next = newStateOf(wanted)
    const trailer = trailerAfter(key, current, next)
    const { body } = next
    const { versionOffset } = prepareValue(body)
    const stored = new StoredBody({ key, body, trailer, versionOffset, version, writtenAtMs: 0 })
    this.events.set(path, stored)
    this.history.push({ path, stored })
    return stored
  }
}

/** The body that a change writes; undefined if it writes none. */
export function writtenBody(outcome: ReturnType<Change>): Buffer | undefined {
  return outcome === undefined || outcome === 'remove' ? undefined : newStateOf(outcome).body
}
