/**
 * The same work for all who want its result.
 *
 * A result is good for everybody who came before the work was begun. Whoever comes while it is under
 * way may know of something that it will not see, so they wait for the next, which they all share and
 * which begins as soon as the one under way has ended.
 */
export class SharedWork<Result> {
  readonly #work: () => Promise<Result>
  #underWay: Promise<Result> | undefined
  #next: Promise<Result> | undefined
  #begun = 0

  constructor(work: () => Promise<Result>) {
    this.#work = work
  }

  /** How often it was begun. */
  get begun(): number {
    return this.#begun
  }

  /** The result of work that begins after this was called. */
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
