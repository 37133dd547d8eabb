/**
 * The scenarios, in two lists. Exploratory runs try new cases: each has a seed, which is printed,
 * and the seed repeats the same operations and faults, though not the same timing. Regression runs
 * have names, and repeat cases that once were, or are known to be, wrong.
 */
import type { FaultOf } from '../../worlds/faults.ts'

export interface Scenario {
  readonly name: string
  readonly seed: number
  readonly operations: number
  /** Names in each of the namespaces; by default there are always new ones. */
  readonly fixedNames?: number | undefined
  readonly watchers: number
  /** The number of random faults, or these in this order. */
  readonly faults: number | readonly FaultOf<'chaos'>[]
  /** One of `storages`. */
  readonly storage: string
  /** The storage breaks a promise: the run passes when one of these guarantees is violated. */
  readonly finds?: readonly string[] | undefined
}

/** The size that the product is held to. */
export const fullSize = { operations: 20_000, watchers: 200, faults: 40 } as const

/** Enough to find what is plainly broken. */
export const shortSize = { operations: 2_000, watchers: 30, faults: 5 } as const

export function exploratory(
  size: Omit<Scenario, 'name' | 'seed' | 'storage'>,
  seed: number,
  storage: string,
): Scenario {
  return { ...size, name: `exploratory-${storage}`, seed, storage }
}

const few = { seed: 1, operations: 2_000, watchers: 20, storage: 'etcd' } as const

export const regression: readonly Scenario[] = [
  {
    ...few,
    // A leader that resumes and does not know yet that it was replaced must not serve reads.
    name: 'leader-resumes',
    faults: ['member-stop', 'peer-cut', 'member-stop', 'peer-cut-one-way'],
  },
  {
    ...few,
    // A write whose response is lost must not be repeated, nor be reported as rejected.
    name: 'lost-responses',
    faults: ['replies-lost', 'reset', 'replies-lost', 'replica-crash', 'replies-lost'],
  },
  {
    ...few,
    // Acknowledged writes exist after a crash of all members.
    name: 'all-members-crash',
    faults: ['members-crash', 'majority-crash', 'members-crash', 'leader-crash'],
  },
  {
    ...few,
    // Writes that wait for a majority are decided one way or the other when it is back.
    name: 'no-majority',
    faults: ['majority-stop', 'majority-crash', 'majority-stop', 'disk-slow'],
  },
  {
    ...few,
    // Many callers on few keys: every transaction has some rejected operations in it.
    name: 'contended-keys',
    fixedNames: 1,
    faults: ['leader-crash', 'replies-lost', 'member-stop', 'reset'],
  },
]

/** Proof that a run detects violations: each storage breaks one promise. */
export const planted: readonly Scenario[] = [
  { name: 'stale-reads', finds: ['consistent reads are linearizable'] },
  { name: 'watch-skips', finds: ['watches deliver exactly the changes, in order'] },
  {
    name: 'writes-again',
    finds: ['a write is applied at most once', 'refused writes are never applied'],
  },
  { name: 'unknown-is-refused', finds: ['refused writes are never applied'] },
].map(({ name, finds }) => ({
  ...few,
  name,
  storage: name,
  finds,
  fixedNames: 5,
  operations: 600,
  faults: ['replies-lost', 'replies-lost'] as const,
}))
