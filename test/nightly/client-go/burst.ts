import { ADMIN_TOKEN } from '../../support/replicas.ts'
import { runProgram } from './program.ts'

/** What the program prints at its end; see burst.go. */
export interface BurstReport {
  readonly events: number
  readonly told: number
  readonly found: number
  readonly refused: readonly string[]
  readonly unsettled: number
  readonly missing: readonly string[]
  readonly twice: readonly string[]
  readonly broken: number
  readonly turnedAway: number
}

export interface BurstSize {
  readonly recorders: number
  readonly events: number
  readonly perSecond: number
}

/** Many real recorders, which write to the server at a port. */
export class Burst {
  readonly done: Promise<BurstReport>
  /** True until the recorders have been given their last event. */
  isWriting = true

  constructor(port: number, size: BurstSize) {
    this.done = this.#run(port, size).finally(() => {
      this.isWriting = false
    })
    this.done.catch(() => {}) // Handled by the caller that awaits it.
  }

  async #run(port: number, size: BurstSize): Promise<BurstReport> {
    let last: unknown
    for await (const line of runProgram([
      `--server=https://127.0.0.1:${port}`,
      `--token=${ADMIN_TOKEN}`,
      `--recorders=${size.recorders}`,
      `--events=${size.events}`,
      `--per-second=${size.perSecond}`,
      'burst',
    ])) {
      last = line
      if ((line as { readonly written?: boolean }).written === true) this.isWriting = false
    }
    return last as BurstReport
  }
}
