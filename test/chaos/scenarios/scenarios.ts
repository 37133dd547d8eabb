/**
 * What is run, in two lists. Exploratory runs go where nobody has been: each has a seed, which is
 * printed, and the seed gives the same operations and faults again, though not the same timing.
 * Regression runs have names, and go where something once was, or is known to be, wrong.
 */
import type { FaultName } from '../faults/kinds.ts'

export interface Scenario {
  readonly name: string
  readonly seed: number
  readonly operations: number
  readonly keys: number
  readonly watchers: number
  /** How many at random, or these in this order. */
  readonly faults: number | readonly FaultName[]
  /** One of `storages`. */
  readonly storage: string
  /** The storage is one that lies: the run is in order when one of these violations is found. */
  readonly finds?: readonly string[] | undefined
}

/** The size that the product is held to. */
export const fullSize = { operations: 20_000, keys: 50, watchers: 200, faults: 40 } as const

/** Enough to find what is plainly broken. */
export const shortSize = { operations: 2_000, keys: 50, watchers: 30, faults: 5 } as const

export function exploratory(
  size: Omit<Scenario, 'name' | 'seed' | 'storage'>,
  seed: number,
  storage: string,
): Scenario {
  return { ...size, name: `exploratory-${storage}`, seed, storage }
}

const few = { seed: 1, operations: 2_000, keys: 20, watchers: 20, storage: 'etcd' } as const

export const regression: readonly Scenario[] = [
  {
    ...few,
    // A leader that wakes up and does not know yet that it is none must not answer reads.
    name: 'leader-wakes-up',
    faults: ['pause-member', 'cut-off-from-peers', 'pause-member', 'hears-but-is-not-heard'],
  },
  {
    ...few,
    // A write whose answer is lost must not be made again, nor be called refused.
    name: 'answers-are-lost',
    faults: ['lose-replies', 'cut-connections', 'lose-replies', 'crash-replica', 'lose-replies'],
  },
  {
    ...few,
    // What was acknowledged is there after a crash of everything.
    name: 'everything-crashes',
    faults: ['kill-all', 'kill-majority', 'kill-all', 'kill-leader'],
  },
  {
    ...few,
    // Writes that wait for a majority are decided one way or the other when it is back.
    name: 'no-majority',
    faults: ['pause-majority', 'kill-majority', 'pause-majority', 'slow-disk'],
  },
  {
    ...few,
    // Many callers on few keys: every transaction has some that are refused in it.
    name: 'everybody-wants-the-same',
    keys: 3,
    faults: ['kill-leader', 'lose-replies', 'pause-member', 'cut-connections'],
  },
]

/** Proof that a run notices: each breaks one promise. */
export const planted: readonly Scenario[] = [
  { ...few, name: 'stale-reads', storage: 'stale-reads', finds: ['not-linearizable'] },
  { ...few, name: 'watch-skips', storage: 'watch-skips', finds: ['watch-reliable'] },
  {
    ...few,
    name: 'writes-again',
    storage: 'writes-again',
    finds: ['applied-twice', 'unasked-change'],
  },
  { ...few, name: 'unknown-is-refused', storage: 'unknown-is-refused', finds: ['unasked-change'] },
].map((scenario) => ({ ...scenario, operations: 600, faults: ['lose-replies', 'lose-replies'] }))
