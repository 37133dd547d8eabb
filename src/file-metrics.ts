/** How the files fare that are looked at while we run. */
import { Gauge, type Registry } from '@prometheus-io/client'
import type { OnLook } from './lib/follow.ts'

/** Whoever looks at the files of these flags tells what comes of it; they have just been read. */
export type FileLooks = (...flags: readonly string[]) => OnLook

/** One series for each flag that was given: never a path, and nothing that a client sends. */
export function showFiles(registry: Registry, wallTime: () => number = Date.now): FileLooks {
  const usable = new Gauge({
    name: 'tidings_file_last_reload_successful',
    help: 'Whether what the files of a flag say is in use: 0 while they cannot be read or used.',
    labelNames: ['flag'],
    registers: [registry],
  })
  const lookedAt = new Gauge({
    name: 'tidings_file_last_reload_success_timestamp_seconds',
    help: 'When the files of a flag were last found to say what is in use. They are looked at once a second.',
    labelNames: ['flag'],
    registers: [registry],
  })
  return (...flags) => {
    const onLook: OnLook = (isUsable) => {
      for (const flag of flags) {
        usable.set({ flag }, isUsable ? 1 : 0)
        if (isUsable) lookedAt.set({ flag }, wallTime() / 1000)
      }
    }
    onLook(true, false)
    return onLook
  }
}
