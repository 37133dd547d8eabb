/** What the checker needs to know of etcd, simulated or real. */

export interface Change {
  readonly type: 'put' | 'delete'
  readonly key: Buffer
  /** Empty for a delete. */
  readonly value: Buffer
  readonly lease: bigint
}

/** One revision of the store. */
export interface Commit {
  readonly revision: number
  /** The true time from which linearizable reads see it. */
  readonly at: number
  /** Sorted by sub-revision. */
  readonly changes: readonly Change[]
  /** The request that made the changes, where the world knows it. */
  readonly command?: { readonly kind: string; readonly compares?: readonly Compare[] } | undefined
}

export interface Compare {
  readonly key: string
  readonly target: number
  readonly number: number
}

/** All keys with their values and the revisions that wrote them. */
export type EtcdState = ReadonlyMap<string, Change & { readonly modRevision: number }>
