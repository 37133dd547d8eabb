/** Replaces `node:os` in the simulation. */
import { needProcess } from './interception.ts'

export function hostname(): string {
  return needProcess('os.hostname').name
}

export function tmpdir(): string {
  return '/tmp'
}
