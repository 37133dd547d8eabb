/** Every change by its version, from one watch of etcd that shares nothing with the server's cache. */
import { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import { beginning } from '../../../src/storage/resource-version.ts'
import type { EventKey, EventWatch, WatchItem } from '../../../src/storage/storage.ts'
import { type PlainEvent, plainEvent } from './plain-event.ts'

/** One state of an event; without `event` it is deleted. */
interface Step {
  readonly version: number
  readonly event: PlainEvent | undefined
}

export interface Change {
  readonly version: number
  readonly before: PlainEvent | undefined
  readonly after: PlainEvent | undefined
}

const REACH_MS_MAX = 20_000
const PROGRESS_MS = 20

export class History implements AsyncDisposable {
  readonly #client: EtcdClient
  readonly #storage: EtcdStorage
  readonly #end = new AbortController()
  readonly #watch: EventWatch
  readonly #watching: Promise<void>
  /** The states of each key, oldest first. */
  readonly #steps = new Map<string, Step[]>()
  #waiting: (() => void)[] = []
  #reached = 0
  /** States before this version are forgotten. */
  #forgotten = 0

  constructor(endpoints: readonly string[]) {
    this.#client = new EtcdClient({ endpoints, defaultTimeoutMs: 10_000 })
    this.#storage = new EtcdStorage({
      client: this.#client,
      prefix: '/registry',
      onCorrupt: (key) => {
        throw new Error(`not an event: ${key}`)
      },
    })
    const all = { cluster: undefined, namespace: undefined }
    const { signal } = this.#end
    this.#watch = this.#storage.watch(all, { from: beginning, signal })
    this.#watching = this.#record()
  }

  /** The newest version up to which all changes are recorded. */
  get reached(): number {
    return this.#reached
  }

  /** All events of the state at this version, in no order. */
  async at(version: number): Promise<readonly PlainEvent[]> {
    if (version < this.#forgotten) throw new Error(`version ${version} is forgotten`)
    await this.#reach(version)
    const events: PlainEvent[] = []
    for (const steps of this.#steps.values()) {
      const event = steps.findLast((step) => step.version <= version)?.event
      if (event !== undefined) events.push(event)
    }
    return events
  }

  /** The changes after `from` up to `to`, in order. */
  async changes(from: number, to: number): Promise<readonly Change[]> {
    await this.#reach(to)
    const changes: Change[] = []
    for (const steps of this.#steps.values()) {
      for (const [index, { version, event }] of steps.entries()) {
        if (version <= from || version > to) continue
        changes.push({ version, before: steps[index - 1]?.event, after: event })
      }
    }
    return changes.sort((one, other) => one.version - other.version)
  }

  /** Frees what only states before this version contain. */
  forgetBefore(version: number): void {
    this.#forgotten = version
    for (const [path, steps] of this.#steps) {
      const first = steps.findLastIndex((step) => step.version <= version)
      const kept = first > 0 ? steps.slice(first) : steps
      if (kept.length === 1 && kept[0]?.event === undefined) this.#steps.delete(path)
      else if (first > 0) this.#steps.set(path, kept)
    }
  }

  async #reach(version: number): Promise<void> {
    const endsAt = performance.now() + REACH_MS_MAX
    while (this.#reached < version) {
      if (performance.now() > endsAt) {
        throw new Error(`the watch is at ${this.#reached}, and does not reach ${version}`)
      }
      // Changes end the wait; without any, etcd reports the revision on request.
      const { promise, resolve } = Promise.withResolvers<void>()
      const late = setTimeout(() => {
        this.#watch.requestProgress()
        resolve()
      }, PROGRESS_MS)
      this.#waiting.push(resolve)
      await promise
      clearTimeout(late)
    }
  }

  async #record(): Promise<void> {
    for await (const { items, version } of this.#watch) {
      for (const item of items) this.#add(item)
      this.#reached = version
      for (const proceed of this.#waiting.splice(0)) proceed()
    }
  }

  #add({ type, stored: { key, body, version } }: WatchItem): void {
    const path = pathOf(key)
    const steps = this.#steps.get(path) ?? []
    if (steps.length === 0) this.#steps.set(path, steps)
    const isPut = type === 'put'
    const before = steps.at(-1)?.event
    const event = isPut ? plainEvent(key, version, JSON.parse(body.toString()), before) : undefined
    steps.push({ version, event })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#watching
    await this.#storage.close()
    this.#client.close()
  }
}

function pathOf({ cluster, namespace, name }: EventKey): string {
  return `${cluster}/${namespace}/${name}`
}
