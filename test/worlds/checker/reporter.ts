import type { ClientWorld } from '../workload/contract.ts'

/** Where invariants report violations. */
export class Reporter {
  readonly #world: Pick<ClientWorld, 'violation'>

  constructor(world: Pick<ClientWorld, 'violation'>) {
    this.#world = world
  }

  report(guarantee: string, what: string, evidence: readonly string[] = []): void {
    this.#world.violation(guarantee, what, evidence)
  }
}
