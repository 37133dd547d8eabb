import type { OriginEvent } from '../registry/origin-version.ts'

/** What a mirror needs of the cluster that it follows. The simulation implements it too. */
export interface Origin {
  /**
   * A page of a list of core/v1 events, in the order of `namespace/name`. Without a token it is the
   * first page of a consistent read; all pages of a list are of one version. Rejects with an
   * OriginError.
   */
  listPage(options: ListPageOptions): Promise<OriginPage>

  /**
   * All changes after `from`, in order. It ends when the origin ends it, and when the signal aborts;
   * it throws an OriginError when it fails. An iteration that is left early ends the request.
   */
  watch(options: OriginWatchOptions): AsyncIterable<OriginChange>

  /**
   * The uid of the cluster's namespace `kube-system`. Undefined when the credentials may not read it,
   * or when it does not identify a cluster. Rejects with an OriginError when the origin cannot say.
   */
  clusterUid?(signal: AbortSignal): Promise<string | undefined>

  /** Closes its connections. */
  close?(): void
}

export interface ListPageOptions {
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined
  readonly limit: number
  readonly continueToken: string | undefined
  readonly signal: AbortSignal
}

export interface OriginWatchOptions {
  readonly namespace: string | undefined
  /** A resourceVersion. */
  readonly from: string
  readonly signal: AbortSignal
  /** Called when the origin has accepted the watch, before any change arrives. */
  readonly onOpen?: (() => void) | undefined
}

export interface OriginPage {
  readonly items: readonly OriginEvent[]
  /** The version of the whole list. */
  readonly resourceVersion: string
  readonly continueToken: string | undefined
  /** How many items could not be decoded; they are not among the items. Default 0. */
  readonly unreadable?: number | undefined
}

export type OriginChange =
  | ({ readonly type: 'put' } & OriginEvent)
  /** The last state, with the version of the delete. */
  | ({ readonly type: 'delete' } & OriginEvent)
  /** Everything up to this version was delivered. */
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  /** A change that could not be decoded. */
  | { readonly type: 'unreadable' }

export type OriginErrorKind =
  /** 410: the version or the continue token is too old. List from the start. */
  | 'expired'
  /** No response, a broken one, or a failure of the origin: try again later. */
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
