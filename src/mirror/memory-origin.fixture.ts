import type { Event } from '../api/event.ts'
import { AbortListener, pause } from '../lib/abort.ts'
import type { OriginEvent } from '../registry/origin-version.ts'
import {
  type ListPageOptions,
  type Origin,
  type OriginChange,
  OriginError,
  type OriginPage,
  type OriginWatchOptions,
} from './origin.ts'

type Change = Exclude<OriginChange, { type: 'bookmark' | 'unreadable' }>

/** Faults with their probabilities, for each request or each delivered change. */
export interface Faults {
  /** A request fails. */
  readonly fails?: number
  /** A watch breaks after a change. */
  readonly breaks?: number
  /** A watch or a page gets 410. */
  readonly expires?: number
  /** A change is delivered twice. */
  readonly repeats?: number
  /** A response or a change takes up to this long. */
  readonly delayMs?: number
}

/** An API server in memory: a map of events, and the history of its changes. */
export class MemoryOrigin implements Origin {
  version: number
  readonly events: Map<string, OriginEvent> = new Map()
  history: { readonly version: number; readonly change: Change }[] = []
  /** Watches from before this version get 410. */
  compacted = 0
  faults: Faults = {}
  /** The uid of `kube-system`; undefined when the mirror may not read it. */
  uid: string | undefined
  /** Requests so far, for tests of how an origin is treated. */
  readonly requests: string[] = []
  readonly #random: () => number
  readonly #waiting: Set<() => void> = new Set()
  #uids = 0

  constructor(random: () => number = Math.random, version = 1000) {
    this.#random = random
    this.version = version
  }

  put(name: string, options: { readonly namespace?: string; readonly at?: number } = {}): string {
    const { namespace = 'a', at = Date.now() } = options
    const path = `${namespace}/${name}`
    const version = ++this.version
    const old = this.events.get(path)?.event.metadata
    const time = `${new Date(at).toISOString().slice(0, 19)}Z`
    const event: Event = {
      metadata: {
        name,
        namespace,
        uid: old?.uid ?? `uid-${++this.#uids}-${version}`,
        creationTimestamp: old?.creationTimestamp ?? time,
        resourceVersion: String(version),
      },
      deprecatedLastTimestamp: time,
      note: `${name} at ${version}`,
    }
    const item = { event, resourceVersion: String(version), bytes: 300 }
    this.events.set(path, item)
    this.#append(version, { type: 'put', ...item })
    return String(version)
  }

  delete(name: string, namespace = 'a'): void {
    const path = `${namespace}/${name}`
    const last = this.events.get(path)
    if (last === undefined) return
    this.events.delete(path)
    const version = ++this.version
    this.#append(version, { ...last, type: 'delete', resourceVersion: String(version) })
  }

  /** Behaves as if the origin's etcd were restored from a backup. */
  restore(backup: {
    readonly version: number
    readonly events: ReadonlyMap<string, OriginEvent>
  }): void {
    this.version = backup.version
    this.events.clear()
    for (const [path, item] of backup.events) this.events.set(path, item)
    this.history = this.history.filter(({ version }) => version <= backup.version)
    this.wake()
  }

  wake(): void {
    for (const resolve of this.#waiting) resolve()
  }

  async clusterUid(): Promise<string | undefined> {
    return this.uid
  }

  async listPage(options: ListPageOptions): Promise<OriginPage> {
    const { namespace, limit, continueToken } = options
    this.requests.push(`list ${limit}`)
    await this.#request(options.signal)
    const [version = String(this.version), after = ''] = continueToken?.split(' ') ?? []
    if (continueToken !== undefined && Number(version) < this.compacted) throw expired()
    const state = Number(version) === this.version ? this.events : this.#stateAt(Number(version))
    const found = [...state.entries()]
      .filter(([path]) => namespace === undefined || path.startsWith(`${namespace}/`))
      .filter(([path]) => path > after)
      .sort(([one], [other]) => (one < other ? -1 : 1))
    const page = found.slice(0, limit)
    const last = page.at(-1)?.[0]
    return {
      items: page.map(([, item]) => item),
      resourceVersion: version,
      continueToken: found.length > limit ? `${version} ${last}` : undefined,
    }
  }

  async *watch(options: OriginWatchOptions): AsyncGenerator<OriginChange, void, undefined> {
    const { namespace, signal } = options
    this.requests.push('watch')
    options.onOpen?.()
    await this.#request(signal)
    let from = Number(options.from)
    if (from < this.compacted) throw expired()
    while (!signal.aborted) {
      // A real watch from a version that does not exist yet is silent until its idle timeout.
      if (this.version < from) throw new OriginError('unavailable', 'restarted')
      const next = this.history.find(({ version }) => version > from)
      if (next === undefined) {
        await this.#changed(signal)
        continue
      }
      from = next.version
      const { metadata } = next.change.event
      if (namespace !== undefined && metadata.namespace !== namespace) continue
      await this.#delay(signal)
      if (!signal.aborted) yield* this.#delivered(next.change)
    }
  }

  *#delivered(change: Change): Generator<OriginChange, void, undefined> {
    const { repeats, breaks, expires } = this.faults
    yield change
    if (this.#hits(repeats)) yield change
    const { resourceVersion } = change
    if (this.#hits(0.1)) yield { type: 'bookmark', resourceVersion }
    if (this.#hits(breaks)) throw new OriginError('unavailable', 'broken off')
    if (this.#hits(expires)) throw expired()
  }

  #append(version: number, change: Change): void {
    this.history.push({ version, change })
    this.wake()
  }

  #stateAt(version: number): ReadonlyMap<string, OriginEvent> {
    const state = new Map<string, OriginEvent>()
    for (const { version: at, change } of this.history) {
      if (at > version) break
      const { namespace, name } = change.event.metadata
      if (change.type === 'put') state.set(`${namespace}/${name}`, change)
      else state.delete(`${namespace}/${name}`)
    }
    return state
  }

  async #request(signal: AbortSignal): Promise<void> {
    await this.#delay(signal)
    if (this.#hits(this.faults.fails)) throw new OriginError('unavailable', 'no response')
    if (this.#hits(this.faults.expires)) throw expired()
  }

  #delay(signal: AbortSignal): Promise<void> {
    const { delayMs = 0 } = this.faults
    return delayMs === 0 ? Promise.resolve() : pause(this.#random() * delayMs, signal)
  }

  async #changed(signal: AbortSignal): Promise<void> {
    const woken = Promise.withResolvers<void>()
    this.#waiting.add(woken.resolve)
    new AbortListener(signal, () => woken.resolve())
    await woken.promise
    this.#waiting.delete(woken.resolve)
  }

  #hits(probability: number | undefined): boolean {
    return probability !== undefined && this.#random() < probability
  }
}

function expired(): OriginError {
  return new OriginError('expired', 'too old resource version')
}

/** A small generator with a seed, so that a failure can be repeated. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
