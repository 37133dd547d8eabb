/** Seeds that once failed, each with what it found. CI runs all of them. */
export interface Regression {
  readonly seed: number
  readonly minutes: number
  /** Default: by the world. */
  readonly operations?: number
  /** Default: clients of the event API. */
  readonly world?: 'mirror'
  readonly found: string
}

/**
 * A change of the simulation (a new fault, another workload) makes a seed another run: what it
 * found must have a test of its own as well.
 */
export const regressions: readonly Regression[] = [
  {
    seed: 7,
    minutes: 10,
    found: 'the simulation: a busy process that was stopped read two messages in the wrong order',
  },
  {
    seed: 1002,
    minutes: 3,
    operations: 50,
    found: 'the simulation: timers that were due while a machine was suspended fired too late',
  },
  {
    seed: 10009,
    minutes: 3,
    operations: 50,
    found: 'the simulation: a watch at a replica that had not noticed a restore was misjudged',
  },
  {
    seed: 1026,
    minutes: 3,
    world: 'mirror',
    found: 'the simulation: a mirror that lists knows the age of what it has stored only',
  },
  {
    seed: 1_265_937_139,
    minutes: 2,
    world: 'mirror',
    found: 'the simulated Raft: a follower that got a whole state never got the entries after it',
  },
]
