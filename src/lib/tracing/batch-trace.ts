import { type Span, sharedBy, type Traced } from './span.ts'

export interface TracedWrite extends Traced {
  /** The span of the write's current step: waiting in the queue, or being committed. */
  step: Span | undefined
}

export function waitsInQueue(write: TracedWrite): void {
  write.step = write.span?.child('wait for a batch')
}

/**
 * Records a batch. It carries writes of many requests, so it has its own trace: the batch links to its
 * recorded writes, and they link to it.
 */
export class BatchTrace {
  /** The parent of the calls to etcd. */
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

  /** `failure` is the error of the transaction, if it failed as a whole. */
  end(failure: unknown): void {
    this.span.end(failure)
    for (const { step } of this.#batch) step?.end(failure)
  }
}
