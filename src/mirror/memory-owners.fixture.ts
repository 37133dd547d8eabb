import { AbortListener } from '../lib/abort.ts'
import {
  type ChangeOf,
  type ListPageOptions,
  OriginError,
  type OriginWatchOptions,
  type PageOf,
} from './origin.ts'
import type { OwnedObject, OwnedResource, OwnersOrigin } from './owners-origin.ts'

type Change = Extract<ChangeOf<OwnedObject>, { readonly type: 'put' | 'delete' }>

/** The pods, ReplicaSets and Jobs of an API server in memory. */
export class MemoryOwners implements OwnersOrigin {
  /** Such as `list pods` and `watch jobs 7`. */
  readonly requests: string[] = []
  /** Resources that the credentials may not read. */
  readonly forbidden: Set<string> = new Set()
  /** Lists and watches from before this version get 410. */
  compacted = 0
  isDown = false
  version = 10
  /** Lists that are running at the same time, and the most that ever were. */
  listing = 0
  listingMost = 0
  readonly #objects = new Map<string, OwnedObject>()
  readonly #history: { readonly resource: string; readonly change: Change }[] = []
  readonly #waiting = new Set<() => void>()

  /** `object` is `resource/namespace/name`, and `owner` is `Kind/name`. */
  put(object: string, owner?: string): void {
    const [resource = '', namespace = '', name = ''] = object.split('/')
    const [kind = '', ownerName = ''] = owner?.split('/') ?? []
    const resourceVersion = String(++this.version)
    const item = { namespace, name, resourceVersion, owner: owner && { kind, name: ownerName } }
    const owned = item as OwnedObject
    this.#objects.set(object, owned)
    this.#append(resource, { type: 'put', ...owned })
  }

  delete(object: string): void {
    const [resource = ''] = object.split('/')
    const last = this.#objects.get(object)
    if (last === undefined) return
    this.#objects.delete(object)
    this.#append(resource, { ...last, type: 'delete', resourceVersion: String(++this.version) })
  }

  /** Ends all watches. */
  wake(): void {
    for (const resolve of this.#waiting) resolve()
  }

  async listPage(
    { resource }: OwnedResource,
    { limit, continueToken, namespace, signal }: ListPageOptions,
  ): Promise<PageOf<OwnedObject>> {
    this.requests.push(`list ${resource}`)
    this.listing++
    this.listingMost = Math.max(this.listingMost, this.listing)
    await new Promise((resolve) => setImmediate(resolve))
    this.listing--
    signal.throwIfAborted()
    this.#check(resource)
    const [version = String(this.version), from = '0'] = continueToken?.split(' ') ?? []
    if (Number(version) < this.compacted) throw new OriginError('expired', 'too old')
    const prefix = namespace === undefined ? `${resource}/` : `${resource}/${namespace}/`
    const all = [...this.#objects].filter(([path]) => path.startsWith(prefix))
    const end = Number(from) + limit
    return {
      items: all.slice(Number(from), end).map(([, item]) => item),
      resourceVersion: version,
      continueToken: end < all.length ? `${version} ${end}` : undefined,
    }
  }

  async *watch(
    { resource }: OwnedResource,
    { from, signal, onOpen }: OriginWatchOptions,
  ): AsyncGenerator<ChangeOf<OwnedObject>, void, undefined> {
    this.requests.push(`watch ${resource} ${from}`)
    this.#check(resource)
    if (Number(from) < this.compacted) throw new OriginError('expired', 'too old')
    onOpen?.()
    let sent = Number(from)
    while (!signal.aborted) {
      for (const { resource: changed, change } of [...this.#history]) {
        const version = Number(change.resourceVersion)
        if (changed !== resource || version <= sent) continue
        sent = version
        yield change
      }
      if (await this.#ended(signal)) return
      this.#check(resource)
    }
  }

  #check(resource: string): void {
    if (this.isDown) throw new OriginError('unavailable', 'no response')
    if (this.forbidden.has(resource)) {
      throw new OriginError('refused', `the origin responded 403: ${resource} is forbidden`)
    }
  }

  #append(resource: string, change: Change): void {
    this.#history.push({ resource, change })
    this.wake()
  }

  /** Waits for a change, or for the end. */
  async #ended(signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    using _listener = new AbortListener(signal, resolve)
    await promise
    this.#waiting.delete(resolve)
    return signal.aborted
  }
}
