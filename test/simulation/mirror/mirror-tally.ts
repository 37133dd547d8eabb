/** Counts what happened to a mirror in a run, for the report. */
import type { MirrorCounters } from '../../../src/mirror/mirror-counters.ts'
import type { ClientWorld } from '../../worlds/workload/contract.ts'

export class MirrorTally {
  puts = 0
  saves = 0
  terms = 0
  calmChecks = 0
  /** How often two replicas were found that believed to be elected. */
  #doubts = 0
  readonly #counters = new Set<MirrorCounters>()

  /** Must be called every second. */
  askReplicas({ replicas }: Pick<ClientWorld, 'replicas'>): void {
    let believers = 0
    for (const replica of replicas) {
      replica.after(0, () => {
        const mirrors = replica.parts?.mirrors
        for (const { counters, isLeader } of mirrors?.stats().values() ?? []) {
          this.#counters.add(counters)
          if (isLeader && ++believers === 2) this.#doubts++
        }
      })
    }
  }

  get outcomes(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>([
      ['stored', this.puts],
      ['saved records', this.saves],
      ['terms', this.terms],
      ['seconds with two believers', this.#doubts],
      ['calm checks', this.calmChecks],
    ])
    const add = (name: string, count: number): void => {
      sums.set(name, (sums.get(name) ?? 0) + count)
    }
    for (const { results, failures, lists, watches, retries, fenced, restores } of this.#counters) {
      for (const [name, count] of Object.entries(results)) add(`result ${name}`, count)
      for (const [name, count] of Object.entries(failures)) add(`origin ${name}`, count)
      add('lists', lists)
      add('watches', watches)
      add('retries', retries)
      add('fenced', fenced)
      add('epochs', restores)
    }
    return sums
  }
}
