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
