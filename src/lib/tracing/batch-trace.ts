import { type Span, sharedBy, type Traced } from './span.ts'

/** A write of a request that may be recorded. */
export interface TracedWrite extends Traced {
  /** The span of what happens to the write now: it waits in the queue, or it is being committed. */
  step: Span | undefined
}

export function waitsInQueue(write: TracedWrite): void {
  write.step = write.span?.child('wait for a batch')
}

/**
 * What is recorded of a batch. It carries writes of many requests, so it has a trace of its own:
 * the batch points at the writes that it carries, as far as they are recorded, and they at it.
 */
export class BatchTrace {
  /** Of the batch; calls to etcd are parts of it. */
  readonly span: Span
  readonly #batch: readonly TracedWrite[]

  /** Undefined when no write of the batch is recorded. */
  static begin(batch: readonly TracedWrite[]): BatchTrace | undefined {
    const span = sharedBy(batch, 'group commit')
    return span && new BatchTrace(span, batch)
  }

  private constructor(span: Span, batch: readonly TracedWrite[]) {
    this.span = span
    this.#batch = batch
    span.set('batch.writes', batch.length)
    for (const write of batch) {
      if (write.span === undefined) continue
      span.link(write.span.context)
      write.step?.end()
      write.step = write.span.child('commit')
      write.step.link(span.context)
      write.step.set('batch.writes', batch.length)
    }
  }

  /** With the error of the transaction, if it failed as a whole. */
  end(failure: unknown): void {
    this.span.end(failure)
    for (const { step } of this.#batch) step?.end(failure)
  }
}
