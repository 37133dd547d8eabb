/** The archive of a world: its store, the clients, and the checks. */
import type { Random } from '../../support/random.ts'
import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { Workload } from '../../worlds/workload/workload.ts'
import type { Scheduler } from '../kernel/scheduler.ts'
import { Bucket } from './bucket.ts'
import { HistoryChecks } from './history-checks.ts'
import { HistoryWriters } from './history-writers.ts'
import type { HistorySetting } from './setting.ts'

export interface HistorySideOptions {
  readonly world: ClientWorld
  readonly setting: HistorySetting
  readonly operationsPerSecond: number
  readonly scheduler: Scheduler
  readonly random: Random
}

export class HistorySide {
  readonly bucket: Bucket
  readonly checks: HistoryChecks
  readonly #options: HistorySideOptions

  constructor(options: HistorySideOptions) {
    const { world, setting, scheduler, random } = options
    this.#options = options
    const { wallMs } = this
    this.bucket = new Bucket({
      scheduler,
      random,
      wallMs,
      onChange: (name, next) => this.checks.onObject(name, next),
    })
    this.checks = new HistoryChecks({ world, bucket: this.bucket, setting, wallMs })
  }

  /** The true wall time. */
  readonly wallMs = (): number => {
    const { startMs, rate } = this.#options.setting.wall
    return Math.floor(startMs + this.#options.scheduler.now * rate)
  }

  startWriters(keeps: ((operation: number) => boolean) | undefined): Workload {
    const { world, setting, operationsPerSecond } = this.#options
    const { checks, wallMs } = this
    checks.start()
    return new HistoryWriters({ world, setting, operationsPerSecond, wallMs, checks, keeps })
  }
}
