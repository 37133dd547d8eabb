import { Histogram, type Registry } from '@prometheus-io/client'
import { RunQueue } from '../../lib/run-queue.ts'
import { type Figure, registerFigure } from './figure.ts'

const WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

const FIGURES: readonly Figure<RunQueue>[] = [
  {
    name: 'tidings_run_queue_waiting',
    help: 'Searches, encodings and other long work that wait for their next time slice.',
    read: ({ waiting }) => waiting,
  },
  {
    name: 'tidings_run_queue_users',
    help: 'Users that compete for time slices.',
    read: ({ users }) => users,
  },
  {
    name: 'tidings_run_queue_turns_total',
    help: 'Turns of the event loop that had time slices.',
    isCounter: true,
    read: ({ turns }) => turns,
  },
]

export function openRunQueue(registry: Registry): RunQueue {
  const waits = new Histogram({
    name: 'tidings_run_queue_wait_seconds',
    help: 'How long work of users waited for a time slice; slices that begin without waiting are not counted.',
    buckets: WAIT_SECONDS,
    registers: [registry],
  })
  const queue = new RunQueue({ onWaited: (waitedMs) => waits.observe(waitedMs / 1000) })
  for (const figure of FIGURES) registerFigure(figure, () => figure.read(queue), registry, {})
  return queue
}
