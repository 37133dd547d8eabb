/**
 * A run of many inputs: sends them, measures how long each blocks the event loop, and collects
 * failures.
 */

import { setTimeout } from 'node:timers/promises'
import { Random } from '../../support/random.ts'
import { type GenerateOptions, inputAt } from './generators/generate.ts'
import { HEAVY, heavyOf } from './generators/heavy.ts'
import type { FuzzInput } from './input.ts'
import { describeInput } from './input.ts'
import type { Answer, Target } from './target.ts'
import { Trial } from './trial.ts'

/** An input that blocks the event loop for longer delays every other request. */
const HOLD_MS_MAX = 50
/**
 * Attempts before it counts, since the garbage collector takes time too, and the same work takes
 * almost twice the CPU time on a busy machine (31 and 55 ms).
 */
const HOLD_ATTEMPTS = 8
/** Longer with each attempt, since other processes are busy for a while. */
const HOLD_PAUSE_MS = 100
/** Requests in flight at once, so that writes share their transactions. */
const UNDER_WAY_MAX = 128
/** Sent in the same event-loop tick. */
const TOGETHER = 16
/** A run stops after so many failures. */
const FAILURES_MAX = 20
const SLOWEST_KEPT = 10
/** Responses of at least this size are checked alone, with nothing in flight. */
const LARGE_BYTES = 100_000

export interface Failure {
  readonly input: FuzzInput
  readonly wrong: readonly string[]
}

export interface Slow {
  readonly holdMs: number
  readonly what: string
  readonly input: FuzzInput
}

export interface CampaignOptions extends GenerateOptions {
  readonly count: number
  readonly onProgress?: ((done: number) => void) | undefined
}

/** Sends inputs to one server and records failures. */
export class Campaign {
  readonly failures: Failure[] = []
  readonly statuses: Map<number, number> = new Map()
  slowest: Slow[] = []
  readonly #target: Target
  readonly #isTimed: boolean
  readonly #trial: Trial
  /** Responses that are not checked yet. */
  #answered: { input: FuzzInput; answer: Answer | Error }[] = []
  #underWay = 0

  /** Only work in this thread can be timed. */
  constructor(target: Target, options: { readonly isTimed: boolean }) {
    this.#isTimed = options.isTimed
    this.#target = target
    this.#trial = new Trial(target)
  }

  async begin(): Promise<void> {
    await this.#trial.begin()
  }

  /** Random inputs, many at a time. */
  async runMany(options: CampaignOptions): Promise<void> {
    const { count, onProgress } = options
    const failuresMax = this.failures.length + FAILURES_MAX
    // Sent last: each would wait for all requests in flight, and some of those take seconds.
    const large: number[] = []
    for (let index = 0; index < count && this.failures.length < failuresMax; ) {
      const together: FuzzInput[] = []
      for (const end = Math.min(count, index + TOGETHER); index < end; index++) {
        const input = inputAt(options, index)
        if (input.body.length + input.target.length > LARGE_BYTES) large.push(index)
        else if (this.#trial.needsPreparation(input)) this.#throwPrepared(input)
        else together.push(input)
      }
      await this.#throw(together)
      if (this.#underWay >= UNDER_WAY_MAX) await this.#settle(UNDER_WAY_MAX / 2)
      if (index % 20_000 === 0) onProgress?.(index)
    }
    for (const index of large) await this.runAlone(inputAt(options, index))
    await this.#settle(0)
  }

  /** Every heavy shape once, one at a time. */
  async runHeavy(options: GenerateOptions): Promise<void> {
    await this.#trial.withGreat(async () => {
      for (const heavy of HEAVY) {
        if (options.kind !== undefined && heavy.kind !== options.kind) continue
        await this.runAlone(heavyOf(heavy, new Random(options.seed)))
      }
    })
  }

  /** A saved input, which may need the state that only heavy ones need. */
  async runWithGreat(input: FuzzInput): Promise<void> {
    await this.#trial.withGreat(() => this.runAlone(input))
  }

  /** Runs an input with nothing else in flight, so that all of the measured time is its own. */
  async runAlone(input: FuzzInput): Promise<void> {
    await this.#settle(0)
    await this.#trial.prepare(input)
    if (!this.#isTimed) {
      this.#expect(input, this.#target.ask(input))
      return this.#settle(0)
    }
    let holdMs = Number.POSITIVE_INFINITY
    for (let again = 0; holdMs > HOLD_MS_MAX && again < HOLD_ATTEMPTS; again++) {
      if (again > 0) {
        await setTimeout(again * HOLD_PAUSE_MS)
        await this.#trial.prepare(input)
      }
      const held = await this.#held(input)
      holdMs = Math.min(holdMs, held.holdMs)
      await this.#look(input, held.answer)
    }
    this.#noteHold(input, holdMs)
    if (holdMs > HOLD_MS_MAX) this.#fail(input, [`held for ${holdMs.toFixed(1)} ms`])
  }

  async end(): Promise<void> {
    await this.#settle(0)
    const wrong = [...(await this.#trial.end()), ...this.#target.complaints()]
    if (wrong.length > 0) this.failures.push({ input: inputAt({ seed: 0 }, 0), wrong })
  }

  /** Not timed: these are like others, except for the state that they need. */
  #throwPrepared(input: FuzzInput): void {
    this.#expect(
      input,
      this.#trial.prepare(input).then(() => this.#target.ask(input)),
    )
  }

  #expect(input: FuzzInput, asked: Promise<Answer>): void {
    this.#underWay++
    asked.then(
      (answer) => this.#answered.push({ input, answer }),
      (error: Error) => this.#answered.push({ input, answer: error }),
    )
  }

  /** Sends all in one tick; if that takes too long, each of them is repeated alone. */
  async #throw(inputs: readonly FuzzInput[]): Promise<void> {
    const startedAt = cpuMs()
    for (const input of inputs) this.#expect(input, this.#target.ask(input))
    await nextTick()
    const holdMs = cpuMs() - startedAt
    this.#lookAtAnswered()
    if (!this.#isTimed || holdMs < HOLD_MS_MAX) return
    for (const input of inputs) await this.runAlone(input)
  }

  /** The longest event-loop tick until the response, in CPU time. */
  async #held(input: FuzzInput): Promise<{ answer: Answer | Error; holdMs: number }> {
    let answer: Answer | Error | undefined
    let holdMs = 0
    await nextTick()
    let before = cpuMs()
    this.#target.ask(input).then(
      (value) => {
        answer = value
      },
      (error: Error) => {
        answer = error
      },
    )
    while (answer === undefined) {
      await nextTick()
      const now = cpuMs()
      holdMs = Math.max(holdMs, now - before)
      before = now
    }
    return { answer, holdMs }
  }

  async #settle(underWay: number): Promise<void> {
    while (this.#underWay > underWay) {
      await nextTick()
      this.#lookAtAnswered()
    }
  }

  #lookAtAnswered(): void {
    const answered = this.#answered
    if (answered.length === 0) return
    this.#answered = []
    for (const { input, answer } of answered) {
      this.#look(input, answer).then(
        () => {
          this.#underWay--
        },
        (error: Error) => {
          this.#underWay--
          this.#fail(input, [`the check of the response failed: ${error.stack}`])
        },
      )
    }
  }

  async #look(input: FuzzInput, answer: Answer | Error): Promise<void> {
    if (answer instanceof Error) return this.#fail(input, [String(answer.stack)])
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
    this.#fail(input, await this.#trial.check(input, answer))
  }

  /** Does nothing when there is nothing wrong. */
  #fail(input: FuzzInput, wrong: readonly string[]): void {
    if (wrong.length > 0) this.failures.push({ input, wrong })
  }

  #noteHold(input: FuzzInput, holdMs: number): void {
    if (!this.#isTimed) return
    const least = this.slowest.at(-1)?.holdMs ?? 0
    if (this.slowest.length >= SLOWEST_KEPT && holdMs <= least) return
    this.slowest.push({ holdMs, what: describeInput(input), input })
    this.slowest.sort((one, other) => other.holdMs - one.holdMs)
    this.slowest.length = Math.min(this.slowest.length, SLOWEST_KEPT)
  }
}

/** CPU time of this thread alone. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
