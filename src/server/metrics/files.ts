/** Metrics of the files that are polled while the server runs. */
import { Gauge, type Registry } from '@prometheus-io/client'
import type { OnPoll } from '../../lib/files/follow.ts'

/** Returns a callback for the outcome of each poll of these flags' files, which were just read. */
export type FilePollStatus = (...flags: readonly string[]) => OnPoll

/** One series per flag that is set; labels have no paths and nothing that a client sends. */
export function registerFileMetrics(
  registry: Registry,
  wallTime: () => number = Date.now,
): FilePollStatus {
  const usable = new Gauge({
    name: 'tidings_file_last_reload_successful',
    help: "1 while the current content of a flag's files is in use, 0 while it cannot be read or used.",
    labelNames: ['flag'],
    registers: [registry],
  })
  const polledAt = new Gauge({
    name: 'tidings_file_last_reload_success_timestamp_seconds',
    help: "When the content of a flag's files was last found to be in use. They are polled once a second.",
    labelNames: ['flag'],
    registers: [registry],
  })
  return (...flags) => {
    const onPoll: OnPoll = (isUsable) => {
      for (const flag of flags) {
        usable.set({ flag }, isUsable ? 1 : 0)
        if (isUsable) polledAt.set({ flag }, wallTime() / 1000)
      }
    }
    onPoll(true, false)
    return onPoll
  }
}
