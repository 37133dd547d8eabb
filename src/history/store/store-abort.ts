/** Ends what callers wait for when their signal aborts, even if a file system does not respond. */
import { AbortListener } from '../../lib/abort.ts'
import { StoreError } from './object-store.ts'

/** `what` is said in the message: `put s3://bucket/name`. */
export function abortedError(what: string, signal: AbortSignal): StoreError {
  return new StoreError('unavailable', `${what}: aborted`, signal.reason)
}

/** The result of the work, or the abort. The work is told by its own signal, if at all. */
export async function orAborted<T>(
  what: string,
  signal: AbortSignal,
  work: Promise<T>,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  using _listener = new AbortListener(signal, () => reject(abortedError(what, signal)))
  return await Promise.race([work, promise])
}

/** The same items, until the abort. */
export async function* untilAborted<T>(
  what: string,
  signal: AbortSignal,
  items: AsyncIterable<T>,
): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]()
  try {
    for (;;) {
      const result = await orAborted(what, signal, iterator.next())
      if (result.done === true) return
      yield result.value
    }
  } finally {
    // Not awaited: an iterator that does not respond must not hold up its reader.
    iterator.return?.().catch(() => {})
  }
}
