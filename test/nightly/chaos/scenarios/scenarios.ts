/**
 * The scenarios, in two lists. Exploratory runs try new cases: each has a seed, which is printed,
 * and the seed repeats the same operations and faults, though not the same timing. Regression runs
 * have names, and repeat cases that once were, or are known to be, wrong.
 */
import type { FaultName } from '../faults/kinds.ts'

export interface Scenario {
  readonly name: string
  readonly seed: number
  readonly operations: number
  readonly keys: number
  readonly watchers: number
  /** The number of random faults, or these in this order. */
  readonly faults: number | readonly FaultName[]
  /** One of `storages`. */
  readonly storage: string
  /** The storage breaks a promise: the run passes when one of these violations is found. */
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
    // A leader that resumes and does not know yet that it was replaced must not serve reads.
    name: 'leader-resumes',
    faults: ['pause-member', 'cut-off-from-peers', 'pause-member', 'cut-outgoing-to-peers'],
  },
  {
    ...few,
    // A write whose response is lost must not be repeated, nor be reported as rejected.
    name: 'lost-responses',
    faults: ['lose-replies', 'cut-connections', 'lose-replies', 'crash-replica', 'lose-replies'],
  },
  {
    ...few,
    // Acknowledged writes exist after a crash of all members.
    name: 'all-members-crash',
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
    // Many callers on few keys: every transaction has some rejected operations in it.
    name: 'contended-keys',
    keys: 3,
    faults: ['kill-leader', 'lose-replies', 'pause-member', 'cut-connections'],
  },
]

/** Proof that a run detects violations: each storage breaks one promise. */
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
