import { unlessAborted } from './turns.ts'

/**
 * One question to etcd for all who want to know the newest version.
 *
 * An answer is good for everybody who came before the question was put. Whoever comes while one is
 * under way may have been told of a write that it will not see, so they wait for the next, which
 * they all share and which is put as soon as the one under way has ended.
 */
export class SharedQuestion<Answer> {
  readonly #put: () => Promise<Answer>
  #underWay: Promise<Answer> | undefined
  #next: Promise<Answer> | undefined
  #asked = 0

  constructor(put: () => Promise<Answer>) {
    this.#put = put
  }

  /** How often the question was put. */
  get asked(): number {
    return this.#asked
  }

  /** A version with every write in it that had been answered when this was called. */
  ask(signal: AbortSignal): Promise<Answer> {
    return unlessAborted(this.#join(), signal)
  }

  #join(): Promise<Answer> {
    if (this.#underWay === undefined) return this.#begin()
    this.#next ??= this.#underWay.then(
      () => this.#begin(),
      () => this.#begin(),
    )
    return this.#next
  }

  #begin(): Promise<Answer> {
    this.#next = undefined
    this.#asked++
    const question = this.#put().finally(() => {
      if (this.#underWay === question) this.#underWay = undefined
    })
    this.#underWay = question
    return question
  }
}
