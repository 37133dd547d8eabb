/**
 * A period in which a replica may do the leader's work: elected, or without an election while etcd is
 * full.
 */
export interface Term {
  /** Aborts when the term ends for any reason. May abort late: check `isHeld`. */
  readonly signal: AbortSignal
  /** Mod revision of the leader's key, for fencing writes; 0 without an election. */
  readonly revision: number
  /** Whether the term is still valid, by the clock. Must be checked before every write. */
  isHeld(): boolean
  /** When the term ends unless it is renewed. */
  readonly heldUntil: number
  /**
   * Set only without an election: the delay before due events are deleted, random per replica, so that
   * replicas rarely delete the same ones.
   */
  readonly lateMs?: number | undefined
}

/** A term that also ends when the signal aborts. */
export function cutShort(term: Term, by: AbortSignal): Term {
  const signal = AbortSignal.any([term.signal, by])
  return {
    signal,
    revision: term.revision,
    lateMs: term.lateMs,
    isHeld: () => !signal.aborted && term.isHeld(),
    get heldUntil() {
      return term.heldUntil
    },
  }
}
