import type { OriginEvent } from '../registry/origin-version.ts'

/** The cluster that a mirror follows. The simulation implements it too. */
export interface Origin {
  /**
   * A page of core/v1 events, ordered by `namespace/name`. Without a token it is the first page of a
   * consistent read; all pages of a list are of one version. Rejects with an OriginError.
   */
  listPage(options: ListPageOptions): Promise<OriginPage>

  /**
   * All changes after `from`, in order. Ends when the origin ends it or the signal aborts; throws an
   * OriginError when it fails. Leaving the iteration early ends the request.
   */
  watch(options: OriginWatchOptions): AsyncIterable<OriginChange>

  /**
   * The uid of the cluster's namespace `kube-system`. Undefined when the credentials may not read it
   * or it does not identify a cluster. Rejects with an OriginError when the origin fails.
   */
  clusterUid?(signal: AbortSignal): Promise<string | undefined>

  close?(): void
}

export interface ListPageOptions {
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined
  readonly limit: number
  readonly continueToken: string | undefined
  readonly signal: AbortSignal
}

export interface OriginWatchOptions {
  readonly namespace: string | undefined
  /** The resourceVersion to start after. */
  readonly from: string
  readonly signal: AbortSignal
  /** Called when the origin has accepted the watch, before any change arrives. */
  readonly onOpen?: (() => void) | undefined
}

export type OriginPage = PageOf<OriginEvent>

export interface PageOf<Item> {
  readonly items: readonly Item[]
  /** The version of the whole list. */
  readonly resourceVersion: string
  readonly continueToken: string | undefined
  /** Number of items that could not be decoded and were omitted. Default: 0. */
  readonly unreadable?: number | undefined
}

export type OriginChange = ChangeOf<OriginEvent>

export type ChangeOf<Item> =
  | ({ readonly type: 'put' } & Item)
  /** The last state, with the version of the delete. */
  | ({ readonly type: 'delete' } & Item)
  /** Everything up to this version was delivered. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  /** A change that could not be decoded. */
  | { readonly type: 'unreadable' }

export type OriginErrorKind =
  /** The version or the continue token is too old (410): list from the start. */
  | 'expired'
  /** No response, a broken one, or a failure of the origin: retry later. */
  | 'unavailable'
  /** The credentials or the address are wrong: an operator has to act. */
  | 'refused'

export class OriginError extends Error {
  override readonly name = 'OriginError'
  readonly kind: OriginErrorKind
  readonly retryAfterMs: number | undefined

  /** The message is shown to operators and must not contain credentials. */
  constructor(
    kind: OriginErrorKind,
    message: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
  }
}
