import { type Lane, RunQueue } from './run-queue.ts'

/** A lane of a new queue. */
export function aLane(name = 'test'): Lane {
  return new RunQueue().userLane(name)
}
