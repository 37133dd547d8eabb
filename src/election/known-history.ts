import type { ConnectionNumber } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'

/** The history of etcd that the cache and all known ages belong to. */
export interface KnownHistory {
  /** The newest connection known to lead to this history; 0 while unknown. */
  verified(): ConnectionNumber
  /** Starts to verify the newest connection. */
  verify(): void
}

/**
 * The `connectionMax` for a write that contains revisions, which must not reach an etcd that was
 * restored since. Must be called when the write is composed. Throws while no connection is verified.
 */
export function connectionMaxFor(history: KnownHistory | undefined): ConnectionNumber | undefined {
  if (history === undefined) return undefined
  const verified = history.verified()
  if (verified > 0) return verified
  throw new EtcdError({
    kind: 'outdated',
    message: 'the connection to etcd broke, and etcd may have been restored from a snapshot',
  })
}
