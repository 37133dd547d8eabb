import type { ConnectionNumber } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'

/** The history of etcd that memory, and with it all that is known about ages, belongs to. */
export interface KnownHistory {
  /** Connections up to this one lead to it. 0 while that is not known. */
  verified(): ConnectionNumber
  /** Sees to it that `verified` reaches the newest connection. */
  verify(): void
}

/**
 * For a write that says something about revisions: it must not reach an etcd that was restored since.
 * To be asked when what is to be written is put together. Throws while no connection may be used.
 */
export function connectionMaxFor(history: KnownHistory | undefined): ConnectionNumber | undefined {
  if (history === undefined) return undefined
  const verified = history.verified()
  if (verified > 0) return verified
  throw new EtcdError({
    kind: 'outdated',
    message: 'the connection to etcd broke, and it may have been restored',
  })
}
