/**
 * Serialises the read-modify-write operations on each key and passes the state that one operation left
 * to the next. Without it, a thousand callers that update one event would all start from the same
 * state, and in every round all but one of the writes would conflict.
 *
 * This is an optimisation, not a lock: other replicas do not take part in the queue.
 */
export class PerKeyQueue<State> {
  /** A key is present while a caller holds it; the value is the queue of waiting callers. */
  readonly #queues = new Map<string, ((state: State | undefined) => void)[]>()
  #waiting = 0

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Returns undefined when the key is free, in which case the caller holds it immediately. Otherwise
   * the caller holds it once the promise resolves to the state that the previous holder left, if that
   * is known. A holder must call `leave`.
   */
  enter(key: string): Promise<State | undefined> | undefined {
    const queue = this.#queues.get(key)
    if (queue === undefined) {
      this.#queues.set(key, [])
      return undefined
    }
    this.#waiting++
    return new Promise((resolve) => queue.push(resolve))
  }

  leave(key: string, state: State | undefined): void {
    const next = this.#queues.get(key)?.shift()
    if (next === undefined) {
      this.#queues.delete(key)
      return
    }
    this.#waiting--
    next(state)
  }
}
