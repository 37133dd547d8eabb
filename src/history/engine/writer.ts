/** The jobs of the process that writes, as the server calls them. */
import type { EngineProcess } from './engine-process.ts'
import { packChanges } from './packed-changes.ts'
import type { CallOptions, WriteJobs, WriterJobs } from './protocol.ts'

const MINUTE_MS = 60_000
/** What each job may take, if its caller does not say. A day of millions of events takes minutes. */
const LIMITS_MS: Readonly<Record<keyof WriterJobs, number>> = {
  reset: MINUTE_MS,
  append: MINUTE_MS,
  flush: 10 * MINUTE_MS,
  merge: 60 * MINUTE_MS,
  check: 60 * MINUTE_MS,
}

export function writeJobsOf(writer: EngineProcess<WriterJobs>): WriteJobs {
  const limited = (job: keyof WriterJobs, options: CallOptions | undefined): CallOptions => ({
    signal: options?.signal,
    timeoutMs: options?.timeoutMs ?? LIMITS_MS[job],
  })
  return {
    reset: (options) => writer.call('reset', undefined, limited('reset', options)),
    append: (changes, options) => {
      return writer.call('append', packChanges(changes), limited('append', options))
    },
    flush: (sequence, options) => writer.call('flush', sequence, limited('flush', options)),
    merge: (day, inputs, removals, options) => {
      return writer.call('merge', { day, inputs, removals }, limited('merge', options))
    },
    check: (files, options) => writer.call('check', files, limited('check', options)),
  }
}
