/**
 * Replaces some functions of `node:zlib` in the simulation, which run in a thread of their own. Nothing is
 * compressed: other versions of zlib would choose other bytes.
 */
import { gunzipSync, gzipSync, type InputType } from 'node:zlib'

type Callback = (error: Error | null, result?: Buffer) => void

export function gzip(input: InputType, callback: Callback): void {
  answer(callback, () => gzipSync(input, { level: 0 }))
}

export function gunzip(
  input: InputType,
  options: { readonly maxOutputLength?: number },
  callback: Callback,
): void {
  answer(callback, () => gunzipSync(input, options))
}

function answer(callback: Callback, work: () => Buffer): void {
  let result: Buffer
  try {
    result = work()
  } catch (error) {
    queueMicrotask(() => callback(error as Error))
    return
  }
  queueMicrotask(() => callback(null, result))
}
