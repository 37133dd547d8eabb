/** Replaces `node:timers/promises` in the simulation. */
import { needProcess } from './interception.ts'

export function setTimeout<Value>(ms = 1, value?: Value): Promise<Value | undefined> {
  const process = needProcess('timers/promises')
  return new Promise((resolve) => process.setTimeout(() => resolve(value), ms))
}

export function setImmediate<Value>(value?: Value): Promise<Value | undefined> {
  const process = needProcess('timers/promises')
  return new Promise((resolve) => process.setImmediate(() => resolve(value)))
}
