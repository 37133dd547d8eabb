import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Whether this file was started as `node <file> full`: the promised sizes, not those of the short
 * run.
 */
export const isFull: boolean = process.argv.includes('full')

/** Runs `count` pieces of work, `width` of them at a time, in order of their numbers. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next
      next += 1
      await work(index)
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
}

/** Starts work at a steady rate, whether or not earlier work is done; resolves when all is done. */
export async function atPace(
  { count, perSecond }: { readonly count: number; readonly perSecond: number },
  work: (index: number) => Promise<void>,
): Promise<void> {
  const startedAt = performance.now()
  const begun: Promise<void>[] = []
  for (let index = 0; index < count; index++) {
    const wait = startedAt + (index * 1000) / perSecond - performance.now()
    if (wait > 0) await sleep(wait)
    const piece = work(index)
    piece.catch(() => {}) // Handled below; until then there is no handler.
    begun.push(piece)
  }
  await Promise.all(begun)
}

/** Repeats work until it is stopped; `stop` resolves when the last piece is done. */
export function again(work: (round: number) => Promise<void>): { stop(): Promise<void> } {
  let isStopped = false
  const running = (async () => {
    for (let round = 0; !isStopped; round++) await work(round)
  })()
  running.catch(() => {}) // Rethrown by `stop`.
  return {
    stop: async () => {
      isStopped = true
      await running
    },
  }
}

/** The value below which this share of all values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
