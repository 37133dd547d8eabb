/**
 * Identifies the cluster behind an origin. The versions of two clusters cannot be compared, so a
 * mirror must notice when its origin is replaced, but must not list everything again when a
 * certificate authority, an address or a credential has changed.
 */
import type { Clock } from '../lib/clock.ts'
import { OriginRestored } from './follower.ts'
import {
  type ListPageOptions,
  type Origin,
  type OriginChange,
  OriginError,
  type OriginPage,
  type OriginWatchOptions,
} from './origin.ts'
import type { RequestPacer } from './request-pacer.ts'

/** How long one check is valid for all streams of a mirror. */
const checkedForMs = 10_000

export interface OriginIdentity {
  /**
   * A hash of the certificate authorities, or the URL if the kubeconfig has none. Versions up to 0.1
   * compare nothing else, and may read a record during an upgrade.
   */
  readonly origin: string
  /** Missing in records of versions up to 0.1. */
  readonly originServer?: string | undefined
  /** The `identity` in the clusters file. */
  readonly originName?: string | undefined
  /** The uid of `kube-system`, where it can be read. */
  readonly originUid?: string | undefined
}

export class OriginReplaced extends OriginRestored {
  readonly identity: OriginIdentity

  constructor(identity: OriginIdentity) {
    super('it is another cluster')
    this.identity = identity
  }
}

/**
 * A different uid or name means a different cluster, even if the other of the two is equal; otherwise
 * an equal one proves the same cluster. Without either, an equal address or equal authorities are
 * enough, since each may change on its own. A name where there was none is no difference.
 */
export function isSameOrigin(one: OriginIdentity, other: OriginIdentity): boolean {
  const uids = compared(one.originUid, other.originUid)
  const names = compared(one.originName, other.originName)
  if (uids === 'different' || names === 'different') return false
  if (uids === 'equal' || names === 'equal') return true
  return (
    compared(one.originServer, other.originServer) === 'equal' ||
    compared(one.origin, other.origin) === 'equal'
  )
}

function compared(one?: string, other?: string): 'equal' | 'different' | 'unknown' {
  if (one === undefined || other === undefined) return 'unknown'
  return one === other ? 'equal' : 'different'
}

export interface IdentifiedOriginOptions {
  readonly origin: Origin
  /** The cluster that the positions belong to. */
  readonly recorded: OriginIdentity
  /** The identity in the configuration, which may be reloaded; it has no uid. */
  readonly configured: () => OriginIdentity
  readonly pacer: RequestPacer
  readonly clock: Clock
  /** Aborts a check. Streams share it, so it must outlive the stream that requested it first. */
  readonly signal: AbortSignal
}

/** Rejects lists with OriginReplaced when the cluster is not the recorded one. */
export class IdentifiedOrigin implements Origin {
  readonly #options: IdentifiedOriginOptions
  #identity: OriginIdentity
  #check: { readonly done: Promise<void>; readonly at: number } | undefined

  constructor(options: IdentifiedOriginOptions) {
    this.#options = options
    this.#identity = options.recorded
  }

  /** Everything known about the cluster that the positions belong to. */
  get identity(): OriginIdentity {
    return this.#identity
  }

  /** Checks before each first page, with which every attempt to follow a stream begins. */
  async listPage(options: ListPageOptions): Promise<OriginPage> {
    if (options.continueToken === undefined) await this.#checked()
    return await this.#options.origin.listPage(options)
  }

  watch(options: OriginWatchOptions): AsyncIterable<OriginChange> {
    return this.#options.origin.watch(options)
  }

  async #checked(): Promise<void> {
    const now = this.#options.clock.now()
    if (this.#check === undefined || now >= this.#check.at + checkedForMs) {
      const check = { done: this.#identify(), at: now }
      this.#check = check
      // A failed check is reported to those who wait for it, and then repeated.
      check.done.catch(() => {
        if (this.#check === check) this.#check = undefined
      })
    }
    await this.#check.done
  }

  async #identify(): Promise<void> {
    const configured = this.#options.configured()
    const originUid = await this.#uid(configured)
    const found = originUid === undefined ? configured : { ...configured, originUid }
    if (!isSameOrigin(this.#identity, found)) throw new OriginReplaced(found)
    this.#identity = { ...this.#identity, ...found }
  }

  async #uid(configured: OriginIdentity): Promise<string | undefined> {
    const { origin, pacer, signal } = this.#options
    if (origin.clusterUid === undefined) return undefined
    await pacer.turn(signal)
    signal.throwIfAborted()
    try {
      return await origin.clusterUid(signal)
    } catch (error) {
      // The uid is needed only to prove that a changed address is the same cluster.
      const isNeeded = !isSameOrigin(this.#identity, configured)
      if (isNeeded || signal.aborted || !(error instanceof OriginError)) throw error
      return undefined
    }
  }
}
