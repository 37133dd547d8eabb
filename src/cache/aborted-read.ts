import { StorageError } from '../storage/errors.ts'

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw timedOut(signal)
}

/** Settles like `promise`, or rejects with `timeout` as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(timedOut(signal))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    // Not `finally`, which takes four more promises for each read.
    promise.then(
      (value) => {
        signal.removeEventListener('abort', stop)
        resolve(value)
      },
      (error) => {
        signal.removeEventListener('abort', stop)
        reject(error)
      },
    )
  })
}

function timedOut(signal: AbortSignal): StorageError {
  return new StorageError({ kind: 'timeout', message: 'the read timed out', cause: signal.reason })
}
