import { SharedWork } from '../lib/shared-work.ts'
import { unlessAborted } from './turns.ts'

/** One question to etcd for all who want to know the newest version. */
export class SharedQuestion<Answer> extends SharedWork<Answer> {
  /** A version with every write in it that had been answered when this was called. */
  ask(signal: AbortSignal): Promise<Answer> {
    return unlessAborted(this.join(), signal)
  }
}
