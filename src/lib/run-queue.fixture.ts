import { type Lane, RunQueue } from './run-queue.ts'

/** A lane in a queue of its own. */
export function aLane(name = 'test'): Lane {
  return new RunQueue().userLane(name)
}
