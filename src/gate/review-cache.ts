import { hash } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'

export interface ReviewCacheOptions<T> {
  /** How long an answer is good for; 0 for not at all. */
  readonly ttlMs: (answer: T) => number
  /** Answers kept; the one kept longest goes first. */
  readonly entriesMax: number
  readonly clock: Clock
}

/**
 * Remembers what somebody else decided, for a while. Whoever asks what is being asked already waits
 * for the same answer. Failures are not remembered.
 */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions<T>
  readonly #answers = new Map<string, { readonly answer: T; readonly until: number }>()
  readonly #underWay = new Map<string, Promise<T>>()

  constructor(options: ReviewCacheOptions<T>) {
    this.#options = options
  }

  /** `question` may be long and secret: it is not kept, only told from others. */
  answerTo(question: string, ask: () => Promise<T>): Promise<T> {
    const key = hash('sha256', question, 'base64')
    const known = this.#answers.get(key)
    if (known !== undefined) {
      if (known.until > this.#options.clock.now()) return Promise.resolve(known.answer)
      this.#answers.delete(key)
    }
    const waiting = this.#underWay.get(key)
    if (waiting !== undefined) return waiting
    const asked = this.#ask(key, ask).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, asked)
    return asked
  }

  async #ask(key: string, ask: () => Promise<T>): Promise<T> {
    const answer = await ask()
    const { ttlMs, entriesMax, clock } = this.#options
    const ttl = ttlMs(answer)
    if (ttl <= 0) return answer
    if (this.#answers.size >= entriesMax) {
      const [oldest] = this.#answers.keys()
      if (oldest !== undefined) this.#answers.delete(oldest)
    }
    this.#answers.set(key, { answer, until: clock.now() + ttl })
    return answer
  }
}
