/** The time during which a replica leads. */
export interface Term {
  /** Aborts at the end of the term, or shortly before. */
  readonly signal: AbortSignal
  /** Mod revision of the leader's key; it does not change during the term. */
  readonly revision: number
  /** Whether the term lasts, by the clock. Check it before every step. */
  isHeld(): boolean
  /** When the term ends if it is not renewed, by the clock. */
  readonly heldUntil: number
  /**
   * Set for a replica that works without an election, as others may at the same time: how long
   * after an event is due it begins to delete it. Undefined for the leader.
   */
  readonly lateMs?: number | undefined
}

/** The same term, which also ends when the signal aborts. */
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
