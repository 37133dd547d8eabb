/**
 * Follows the owners of one resource, in all namespaces or in one: lists page by page, then watches.
 * It keeps nothing itself. All failures are repeated, those that an operator has to resolve slowly.
 */
import type { KnownOwners } from '../incidents/known-owners.ts'
import { pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Semaphore } from '../lib/semaphore.ts'
import { type ChangeOf, OriginError } from './origin.ts'
import type { OwnedObject, OwnedResource, OwnersOrigin } from './owners-origin.ts'
import type { RequestPacer } from './request-pacer.ts'
import { StreamHealth, type StreamState } from './stream-health.ts'

const pageItemsMax = 250
const retryFirstMs = 1_000
const retryMostMs = 60_000
/** An API server may refuse everything for a moment after its start. */
const refusedFirstMs = 5_000
const refusedMostMs = 120_000
/**
 * A watch that ends sooner, without a change, counts as a failure. One that has been open for longer
 * has caught up.
 */
const watchMsMin = 2_000
/** The limits of Kubernetes: an origin cannot make entries larger. */
const nameLengthMax = 253

export interface OwnersFollowerOptions {
  readonly origin: OwnersOrigin
  readonly resource: OwnedResource
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined
  readonly cluster: string
  readonly known: Pick<KnownOwners, 'own' | 'disown'>
  readonly pacer: RequestPacer
  /** Limits the pages in memory. */
  readonly pages: Semaphore
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export class OwnersFollower {
  readonly #options: OwnersFollowerOptions
  readonly #health: StreamHealth
  readonly #backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
  readonly #refusedBackoff = new Backoff({ firstMs: refusedFirstMs, mostMs: refusedMostMs })
  /** All changes up to this version are known; undefined while listing. */
  #position: string | undefined
  /** How far a list has come. */
  #list: { readonly version: string; readonly continueToken: string } | undefined
  #loggedMessage = ''

  constructor(options: OwnersFollowerOptions) {
    this.#options = options
    this.#health = new StreamHealth(options.clock)
  }

  get resource(): OwnedResource {
    return this.#options.resource
  }

  get isFollowing(): boolean {
    return this.#state === 'Following'
  }

  /** Why owners are unknown; empty when nothing is wrong, or has not been for long. */
  get message(): string {
    return this.#state === 'Stalled' ? this.#health.message : ''
  }

  get #state(): StreamState {
    return this.#health.state(undefined, this.#position === undefined)
  }

  /** Resolves when aborted. Rejects only on a bug. */
  async run(): Promise<void> {
    const { signal } = this.#options
    while (!signal.aborted) {
      try {
        while (this.#position === undefined) await this.#listPage()
        await this.#watch(this.#position)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof OriginError)) throw error
        await pause(this.#failed(error), signal)
      }
    }
  }

  /** Returns how long to wait. */
  #failed(error: OriginError): number {
    this.#health.failed(error)
    if (error.kind === 'expired') {
      this.#position = undefined
      this.#list = undefined
    }
    const { message } = this
    if (message !== '' && message !== this.#loggedMessage) {
      const { resource, namespace, log } = this.#options
      log.warn('Owners are unknown; will retry', {
        resource: resource.resource,
        namespace,
        err: error,
      })
      this.#loggedMessage = message
    }
    const backoff = error.kind === 'refused' ? this.#refusedBackoff : this.#backoff
    return Math.max(error.retryAfterMs ?? 0, backoff.next())
  }

  async #listPage(): Promise<void> {
    const { origin, resource, namespace, pacer, pages, signal } = this.#options
    const continueToken = this.#list?.continueToken
    const page = await pages.take(async () => {
      await pacer.turn(signal)
      signal.throwIfAborted()
      return await origin.listPage(resource, {
        namespace,
        limit: pageItemsMax,
        continueToken,
        signal,
      })
    })
    this.#responded()
    for (const item of page.items) this.#own(item)
    const version = this.#list?.version ?? page.resourceVersion
    if (page.continueToken === undefined) {
      this.#position = version
      this.#list = undefined
    } else this.#list = { version, continueToken: page.continueToken }
  }

  async #watch(from: string): Promise<void> {
    const { origin, resource, namespace, pacer, clock, signal } = this.#options
    await pacer.turn(signal)
    signal.throwIfAborted()
    const startedAt = clock.now()
    let isEmpty = true
    let opened: ReturnType<typeof setTimeout> | undefined
    const onOpen = (): void => {
      opened = setTimeout(() => this.#caughtUp(), watchMsMin)
    }
    try {
      for await (const change of origin.watch(resource, { namespace, from, signal, onOpen })) {
        if (isEmpty) this.#responded()
        isEmpty = false
        this.#backoff.reset()
        this.#take(change)
        if (signal.aborted) return
      }
    } finally {
      clearTimeout(opened)
      this.#health.ended()
    }
    if (clock.now() - startedAt >= watchMsMin) this.#backoff.reset()
    else if (isEmpty) {
      throw new OriginError('unavailable', 'the origin ended the watch immediately')
    }
  }

  #caughtUp(): void {
    this.#responded()
    this.#health.caughtUp()
  }

  #responded(): void {
    this.#health.started()
    this.#refusedBackoff.reset()
    if (this.#loggedMessage === '') return
    this.#loggedMessage = ''
    const { resource, namespace, log } = this.#options
    log.info('Owners can be read again', { resource: resource.resource, namespace })
  }

  #take(change: ChangeOf<OwnedObject>): void {
    if (change.type === 'unreadable') return
    if (change.type === 'put') this.#own(change)
    if (change.type === 'delete') this.#disown(change)
    if (change.resourceVersion !== '') this.#position = change.resourceVersion
  }

  #own(object: OwnedObject): void {
    const { cluster, known, resource } = this.#options
    const { namespace, name, owner } = object
    if (!this.#isOfStream(object)) return
    known.own(cluster, namespace, { kind: resource.kind, name }, owner)
  }

  #disown(object: OwnedObject): void {
    const { cluster, known, resource } = this.#options
    const { namespace, name } = object
    if (this.#isOfStream(object)) known.disown(cluster, namespace, { kind: resource.kind, name })
  }

  /** An origin may send objects that were not requested, and anything as their names. */
  #isOfStream({ namespace, name, owner }: OwnedObject): boolean {
    const { namespace: wanted } = this.#options
    if (name === '' || name.length > nameLengthMax || namespace.length > nameLengthMax) return false
    const ownerLength = owner === undefined ? 0 : Math.max(owner.kind.length, owner.name.length)
    return ownerLength <= nameLengthMax && (wanted === undefined || namespace === wanted)
  }
}
