import type { ConnectionNumber } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'

/** The history of etcd that memory belongs to, and with it all that is known about ages. */
export interface KnownHistory {
  /** Connections up to this one lead to it. 0 while unknown. */
  verified(): ConnectionNumber
  /** Makes sure that `verified` reaches the newest connection. */
  verify(): void
}

/**
 * The `connectionMax` for a write that contains revisions: it must not reach an etcd that was
 * restored since. Call it when the write is put together. Throws while no connection may be used.
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
