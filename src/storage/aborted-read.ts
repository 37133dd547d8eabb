import { AbortListener } from '../lib/abort.ts'
import { StorageError } from './errors.ts'

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw timedOut(signal)
}

/** Settles like `promise`, or rejects with `timeout` as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener = new AbortListener(signal, () => reject(timedOut(signal)))
    // `finally` would take four more promises for each read.
    promise.then(
      (value) => {
        listener[Symbol.dispose]()
        resolve(value)
      },
      (error) => {
        listener[Symbol.dispose]()
        reject(error)
      },
    )
  })
}

function timedOut(signal: AbortSignal): StorageError {
  return new StorageError({ kind: 'timeout', message: 'the read timed out', cause: signal.reason })
}
