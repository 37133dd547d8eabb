import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'

export interface ReviewCacheOptions<T> {
  /** How long an answer is good for; 0 for not at all. */
  readonly ttlMs: (answer: T) => number
  /** Answers that let nobody in are kept by themselves: anybody can make as many as they like. */
  readonly isRefusal: (answer: T) => boolean
  /** Answers kept of each of the two; the one kept longest goes first. */
  readonly entriesMax: number
  readonly clock: Clock
}

/**
 * Remembers what somebody else decided, for a while. Whoever asks what is being asked already waits
 * for the same answer. Failures are not remembered.
 */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions<T>
  readonly #others: Answers<T> = new Map()
  readonly #refusals: Answers<T> = new Map()
  readonly #underWay = new Map<string, Promise<T>>()

  constructor(options: ReviewCacheOptions<T>) {
    this.#options = options
  }

  /** `question` may be long and secret: it is not kept, only told from others. */
  answerTo(question: string, ask: () => Promise<T>): Promise<T> {
    const key = hash('sha256', question, 'base64')
    const answers = this.#others.has(key) ? this.#others : this.#refusals
    const known = answers.get(key)
    if (known !== undefined) {
      if (known.until > this.#options.clock.now()) return Promise.resolve(known.answer)
      answers.delete(key)
    }
    const waiting = this.#underWay.get(key)
    if (waiting !== undefined) return waiting
    const asked = this.#ask(key, ask).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, asked)
    return asked
  }

  async #ask(key: string, ask: () => Promise<T>): Promise<T> {
    const answer = await ask()
    const { ttlMs, isRefusal, entriesMax, clock } = this.#options
    const ttl = ttlMs(answer)
    if (ttl <= 0) return answer
    const answers = isRefusal(answer) ? this.#refusals : this.#others
    if (answers.size >= entriesMax) {
      const [oldest] = answers.keys()
      if (oldest !== undefined) answers.delete(oldest)
    }
    answers.set(key, { answer, until: clock.now() + ttl })
    return answer
  }
}

type Answers<T> = Map<string, { readonly answer: T; readonly until: number }>
