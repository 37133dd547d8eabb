import type { Event } from '../api/event.ts'
import type { Traced } from '../lib/tracing/span.ts'

/**
 * A write with a fence is applied only while this key of the store still has this revision. Work
 * that one elected replica does is fenced by the key of its election: after a pause, it cannot
 * write any more if another replica was elected meanwhile.
 */
export interface Fence {
  readonly key: string
  readonly revision: number
}

export interface UpdateOptions extends Traced {
  readonly fence?: Fence | undefined
  /** There is probably no event yet: a read of the key is not worth its cost. Default false. */
  readonly isProbablyNew?: boolean | undefined
}

export interface CreateOptions extends Traced {
  /**
   * The event of which `body` is the encoded form, which saves parsing `body` when it is read again.
   * May be kept in memory for a while, with all that its texts are parts of.
   */
  readonly event?: Event | undefined
}
