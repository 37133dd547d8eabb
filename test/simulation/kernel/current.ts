/** Which simulated process runs, and how its code is run. */
import type { SimulatedProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'

let current: SimulatedProcess | undefined

/** The process whose code is running. */
export function currentProcess(): SimulatedProcess | undefined {
  return current ?? resident
}

let resident: SimulatedProcess | undefined

/**
 * From now on, code that no entry of the scheduler runs belongs to this process: for tests that
 * await production code while `pump` runs the world.
 */
export function reside(process: SimulatedProcess): void {
  resident = process
}

/** Runs the world entry by entry, one in each turn of the event loop, until it is stopped. */
export function pump(scheduler: Scheduler): () => void {
  let isStopped = false
  const turn = () => {
    if (isStopped) return
    realSetImmediate(turn)
    scheduler.next(scheduler.now + idleMs)?.()
  }
  realSetImmediate(turn)
  return () => {
    isStopped = true
  }
}

/** How far time moves when nothing is scheduled. */
const idleMs = 1_000
/** Taken before interception.ts replaces it. */
const realSetImmediate = setImmediate

let running = 0

/** Whether a world runs: then code that belongs to no process must not use clocks and timers. */
export function isWorldRunning(): boolean {
  return running > 0
}

/**
 * Runs a world, synchronously. Must not be called from a microtask, where microtasks cannot be
 * drained: see `inTask`.
 */
export function runWorld<Result>(run: () => Result): Result {
  let isDrained = false
  queueMicrotask(() => {
    isDrained = true
  })
  drain()
  if (!isDrained) throw new Error('a world cannot run inside a microtask')
  running++
  try {
    return run()
  } finally {
    running--
  }
}

/** Runs work as a task of the event loop of its own. */
export function inTask<Result>(work: () => Result): Promise<Result> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(work())
      } catch (error) {
        reject(error)
      }
    })
  })
}

/** Runs microtasks and ticks until there are none; must not be called from inside one. */
const drain: () => void = (process as unknown as { _tickCallback: () => void })._tickCallback

/** Runs work, and everything that follows from it without waiting, as this process. */
export function runAs(owner: SimulatedProcess | undefined, work: () => void): void {
  current = owner
  try {
    work()
    drain()
  } finally {
    current = undefined
  }
}
