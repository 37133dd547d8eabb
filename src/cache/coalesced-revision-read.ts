import { SharedWork } from '../lib/shared-work.ts'
import type { Span } from '../lib/tracing/span.ts'
import { unlessAborted } from './aborted-read.ts'

/**
 * Coalesces concurrent reads of the newest version: one request to etcd serves all waiting callers.
 * Like a batch of writes, a run that serves recorded requests has a trace of its own: it points at
 * the requests that it serves, and they at it.
 */
export class CoalescedRevisionRead<Result> extends SharedWork<Result> {
  /** Of the callers that the next run serves, as far as they are recorded. */
  readonly #callers: Span[]

  /** The span is of the run, undefined when none of its callers is recorded. */
  constructor(work: (span: Span | undefined) => Promise<Result>) {
    const callers: Span[] = []
    super(() => (callers.length === 0 ? work(undefined) : recordedRun(callers.splice(0), work)))
    this.#callers = callers
  }

  /** The result includes every write that was acknowledged before this call. */
  read(signal: AbortSignal, span?: Span): Promise<Result> {
    if (span !== undefined) this.#callers.push(span)
    return unlessAborted(this.join(), signal)
  }
}

async function recordedRun<Result>(
  callers: readonly Span[],
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  const run = sharedBy(callers)
  if (run === undefined) return work(undefined)
  for (const caller of callers) {
    run.link(caller.context)
    caller.link(run.context)
  }
  try {
    const result = await work(run)
    run.end()
    return result
  } catch (error) {
    run.end(error)
    throw error
  }
}

function sharedBy(callers: readonly Span[]): Span | undefined {
  for (const caller of callers) {
    const run = caller.shared('shared read')
    if (run !== undefined) return run
  }
  return undefined
}
