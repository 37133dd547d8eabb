import { setTimeout as sleep } from 'node:timers/promises'
import type { EventApiUnderTest } from '../../support/event-api.ts'
import { inParallel } from '../../support/load.ts'
import { Random } from '../../support/random.ts'
import { madeBody, madeKey } from './made-events.ts'

/** Events before the first query. */
const FIRST_EVENTS = 500
const WRITERS = 16

/** Writers that create, replace and delete events until the end. For `await using`. */
export class Writes implements AsyncDisposable {
  readonly #api: EventApiUnderTest
  /** The times of events are before it. */
  readonly #aroundMs: number
  readonly #end = new AbortController()
  #running: Promise<unknown> = Promise.resolve()
  #failure: unknown
  #count = 0

  /** Resolves when the first events are there. */
  static async start(api: EventApiUnderTest, seed: number, aroundMs: number): Promise<Writes> {
    const writes = new Writes(api, aroundMs)
    const random = new Random(seed ^ 0x5eed)
    await inParallel(FIRST_EVENTS, 50, () => writes.#put(random))
    const writers = Array.from({ length: WRITERS }, () => writes.#write(random.fork()))
    writes.#running = Promise.all(writers).catch((error: unknown) => {
      writes.#failure = error
    })
    return writes
  }

  private constructor(api: EventApiUnderTest, aroundMs: number) {
    this.#api = api
    this.#aroundMs = aroundMs
  }

  get count(): number {
    return this.#count
  }

  /** Throws what a writer has failed with. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  async #write(random: Random): Promise<void> {
    while (!this.#end.signal.aborted) {
      if (random.chance(0.75)) await this.#put(random)
      else await this.#delete(random)
      this.#count++
      await sleep(random.below(4))
    }
  }

  async #put(random: Random): Promise<void> {
    const key = madeKey(random)
    const body = madeBody(random, key, this.#aroundMs)
    await this.#api.storage.update(key, () => body)
  }

  async #delete(random: Random): Promise<void> {
    await this.#api.storage
      .update(madeKey(random), (current) => (current === undefined ? undefined : 'remove'))
      .catch(ignoreMissing)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#running
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && 'kind' in error && error.kind === 'missing')) throw error
}
