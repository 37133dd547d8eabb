/**
 * Linearizable reads of one member: they wait until the leader has confirmed that it still leads,
 * and until this member has applied what was committed by then. Reads that come while a
 * confirmation is under way wait for the next one, together.
 */
import type { Leadership } from './leadership.ts'
import type { MemberProcess } from './process.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'

const retryMs = 500
const timeoutMs = 7_000

type Waiting = (status: Status | undefined) => void

/** The confirmation under way. */
interface Round {
  readonly reads: readonly Waiting[]
  readonly startedAt: number
  /** The part of the history to be applied, once confirmed. */
  index: number | undefined
}

/** The member, as its reads see it. */
export interface ReadHost {
  readonly index: number
  readonly process: MemberProcess
  readonly leadership: Leadership
  readonly applied: number
}

export class ReadGate {
  readonly #host: ReadHost
  #waiting: Waiting[] = []
  #round: Round | undefined
  #hasTimer = false

  constructor(host: ReadHost) {
    this.#host = host
  }

  wait(done: Waiting): void {
    this.#waiting.push(done)
    this.#next()
  }

  /** A leader was found: an answer of the one before is not waited for. */
  leaderChanged(): void {
    if (this.#round?.index === undefined) this.#end(statuses.leaderChanged)
  }

  /** The leader can answer from now on. */
  leaderEstablished(): void {
    if (this.#round?.index === undefined) this.#ask()
  }

  applied(): void {
    const index = this.#round?.index
    if (index !== undefined && this.#host.applied >= index) this.#end(undefined)
  }

  crash(): void {
    this.#waiting = []
    this.#round = undefined
    this.#hasTimer = false
  }

  #next(): void {
    if (this.#round !== undefined || this.#waiting.length === 0) return
    const startedAt = this.#host.process.world.now()
    this.#round = { reads: this.#waiting, startedAt, index: undefined }
    this.#waiting = []
    this.#ask()
  }

  #end(status: Status | undefined): void {
    const { reads = [] } = this.#round ?? {}
    this.#round = undefined
    for (const done of reads) done(status)
    this.#next()
  }

  #ask(): void {
    const round = this.#round
    if (round === undefined) return
    this.#host.leadership.confirm(this.#host.index, (index) => {
      if (round !== this.#round || round.index !== undefined) return
      round.index = index
      this.applied()
    })
    if (this.#round === round && !this.#hasTimer) this.#armTimer()
  }

  /**
   * Repeats a question that may have been lost. The timer is not cancelled when the answer comes: it
   * looks at the round under way when it runs, so that frequent reads share it.
   */
  #armTimer(): void {
    const { process } = this.#host
    this.#hasTimer = true
    process.after(retryMs, () => {
      this.#hasTimer = false
      const round = this.#round
      if (round === undefined || round.index !== undefined) return
      if (process.world.now() - round.startedAt >= timeoutMs - 1) this.#end(statuses.timedOut)
      else this.#ask()
    })
  }
}
