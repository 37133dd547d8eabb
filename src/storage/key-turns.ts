/**
 * Lets those who read, change and write the same thing do so one after another, each told what the
 * one before left there. Without it a thousand callers who update one event would all write from
 * the same state, and all but one of them in vain, again and again.
 *
 * It saves work and promises nothing: other replicas take no turns here.
 */
export class KeyTurns<State> {
  /** By key, if somebody has the turn: those behind. */
  readonly #lines = new Map<string, ((left: State | undefined) => void)[]>()
  #waiting = 0

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Undefined: the turn is the caller's. Otherwise it is when the promise resolves, to what the one
   * before left, if that is known. Whoever has the turn must `leave`.
   */
  enter(key: string): Promise<State | undefined> | undefined {
    const line = this.#lines.get(key)
    if (line === undefined) {
      this.#lines.set(key, [])
      return undefined
    }
    this.#waiting++
    return new Promise((resolve) => line.push(resolve))
  }

  leave(key: string, left: State | undefined): void {
    const next = this.#lines.get(key)?.shift()
    if (next === undefined) {
      this.#lines.delete(key)
      return
    }
    this.#waiting--
    next(left)
  }
}
