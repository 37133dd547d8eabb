/**
 * Coalesces concurrent requests for the same work: one run serves all callers that wait.
 *
 * A result is valid for every caller that arrived before the run began. A caller that arrives during a
 * run may know of a change that the run does not see, so it waits for the next run. All such callers
 * share that next run, which begins as soon as the current one has ended.
 */
export class SharedWork<Result> {
  readonly #work: () => Promise<Result>
  #underWay: Promise<Result> | undefined
  #next: Promise<Result> | undefined
  #begun = 0

  constructor(work: () => Promise<Result>) {
    this.#work = work
  }

  /** Number of runs that have begun. */
  get begun(): number {
    return this.#begun
  }

  /** The result of a run that begins after this call. */
  join(): Promise<Result> {
    if (this.#underWay === undefined) return this.#begin()
    this.#next ??= this.#underWay.then(
      () => this.#begin(),
      () => this.#begin(),
    )
    return this.#next
  }

  #begin(): Promise<Result> {
    this.#next = undefined
    this.#begun += 1
    const work = this.#work().finally(() => {
      if (this.#underWay === work) this.#underWay = undefined
    })
    this.#underWay = work
    return work
  }
}
