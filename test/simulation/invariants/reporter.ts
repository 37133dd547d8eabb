import type { ClientWorld } from '../workload/contract.ts'

/** How often each check was made, by its name: a check that never runs proves nothing. */
export class Reporter {
  readonly counts: Map<string, number> = new Map()
  readonly #world: Pick<ClientWorld, 'violation'>

  constructor(world: Pick<ClientWorld, 'violation'>) {
    this.#world = world
  }

  report(guarantee: string, what: string, evidence: readonly string[] = []): void {
    this.#world.violation(guarantee, what, evidence)
  }

  count(check: string): void {
    this.counts.set(check, (this.counts.get(check) ?? 0) + 1)
  }
}
