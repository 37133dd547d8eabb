import { SharedWork } from '../lib/shared-work.ts'
import { unlessAborted } from './aborted-read.ts'

/**
 * Coalesces concurrent reads of the newest version: one request to etcd serves all waiting callers.
 */
export class CoalescedRevisionRead<Result> extends SharedWork<Result> {
  /** The result includes every write that was acknowledged before this call. */
  read(signal: AbortSignal): Promise<Result> {
    return unlessAborted(this.join(), signal)
  }
}
