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
