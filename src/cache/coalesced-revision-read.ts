import { SharedWork } from '../lib/shared-work.ts'
import { recordedAs, type Span, sharedBy } from '../lib/tracing/span.ts'
import { unlessAborted } from '../storage/aborted-read.ts'

interface RecordedCaller {
  readonly span: Span
}

/**
 * Coalesces concurrent reads of the newest version: one request to etcd serves all waiting callers.
 * Like a batch of writes, a run that serves recorded requests has a trace of its own: it points at
 * the requests that it serves, and they at it.
 */
export class CoalescedRevisionRead<Result> extends SharedWork<Result> {
  /** Spans of the callers that the next run serves, as far as they are recorded. */
  readonly #callers: RecordedCaller[]

  /** The span is of the run, undefined when none of its callers is recorded. */
  constructor(work: (span: Span | undefined) => Promise<Result>) {
    const callers: RecordedCaller[] = []
    super(() => (callers.length === 0 ? work(undefined) : recordedRun(callers.splice(0), work)))
    this.#callers = callers
  }

  /** The result includes every write that was acknowledged before this call. */
  read(signal: AbortSignal, span?: Span): Promise<Result> {
    if (span !== undefined) this.#callers.push({ span })
    return unlessAborted(this.join(), signal)
  }
}

function recordedRun<Result>(
  callers: readonly RecordedCaller[],
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  const run = sharedBy(callers, 'shared read')
  if (run === undefined) return work(undefined)
  for (const { span } of callers) {
    run.link(span.context)
    span.link(run.context)
  }
  return recordedAs(run, work)
}
