/** The network between an origin and the replicas: it delays, and holds what a partition blocks. */
import type { Random } from '../../support/random.ts'
import type { Scheduler } from '../kernel/scheduler.ts'
import type { Delay } from '../network/network.ts'

const usualDelay: Delay = { least: 0.5, most: 3 }

export type OriginDirection = 'toServer' | 'toReplica'

interface Link {
  delay: Delay
  isBlocked: boolean
  held: (() => void)[]
  /** When the last message of each direction arrives; later ones do not overtake it. */
  readonly lastAt: Record<OriginDirection, number>
}

export class OriginNetwork {
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #links: readonly Link[]

  constructor(scheduler: Scheduler, random: Random, replicas: number) {
    this.#scheduler = scheduler
    this.#random = random
    this.#links = Array.from({ length: replicas }, () => ({
      delay: usualDelay,
      isBlocked: false,
      held: [],
      lastAt: { toServer: 0, toReplica: 0 },
    }))
  }

  send(replica: number, direction: OriginDirection, run: () => void): void {
    const link = this.#link(replica)
    const { least, most } = link.delay
    const soonest = this.#scheduler.now + this.#random.between(least, most)
    const at = Math.max(soonest, link.lastAt[direction])
    link.lastAt[direction] = at
    this.#scheduler.at(at, () => {
      if (link.isBlocked) link.held.push(run)
      else run()
    })
  }

  block(replica: number): void {
    this.#link(replica).isBlocked = true
  }

  unblock(replica: number): void {
    const link = this.#link(replica)
    link.isBlocked = false
    const { held } = link
    link.held = []
    for (const run of held) run()
  }

  slow(replica: number, delay: Delay = usualDelay): void {
    this.#link(replica).delay = delay
  }

  heal(): void {
    for (const replica of this.#links.keys()) {
      this.slow(replica)
      this.unblock(replica)
    }
  }

  #link(replica: number): Link {
    return this.#links[replica] as Link
  }
}
