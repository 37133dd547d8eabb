import { median } from '../support/request-costs.ts'

/** What one run measured. */
export interface Sample {
  /** CPU time of the process per unit of work. */
  readonly micros?: number
  readonly perSecond?: number
  readonly latencyMs?: number
}

export type Run = () => Promise<Sample>

/**
 * Runs all in turn, so that a change in the speed of the machine meets all of them. The first round
 * warms up and does not count; the order changes with each round.
 */
export async function byTurns(
  runs: ReadonlyMap<string, Run>,
  rounds: number,
): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const samples = new Map<string, Sample[]>([...runs.keys()].map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    const order = [...runs]
    order.push(...order.splice(0, round % order.length))
    for (const [name, run] of order) {
      const sample = await run()
      if (round > 0) samples.get(name)?.push(sample)
    }
  }
  return samples
}

export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) }
}

/** Returns the ratio of each round. */
export function ratiosOf(ours: readonly number[], theirs: readonly number[]): readonly number[] {
  return ours.map((one, round) => one / (theirs[round] ?? Number.NaN))
}
