/** Checks for the settings with which the launcher, the image and the unit start Node. */

import type { Log } from '../lib/log/log.ts'

/** In MiB. The launcher sets 8; more leaves more garbage in memory. */
const SEMI_SPACE_MIB_MAX = 16
const SEMI_SPACE = /--max[-_]semi[-_]space[-_]size[= ](\d+)/g

export interface ProcessSettings {
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The settings that are missing, as an operator would write them. */
export function missingSettings({ execArgv, env }: ProcessSettings): readonly string[] {
  const options = [env['NODE_OPTIONS'] ?? '', ...execArgv].join(' ')
  // Node uses the last one.
  const semiSpace = Number([...options.matchAll(SEMI_SPACE)].at(-1)?.[1] ?? Infinity)
  const missing: string[] = []
  if (semiSpace > SEMI_SPACE_MIB_MAX) missing.push('NODE_OPTIONS=--max-semi-space-size=8')
  if (env['MALLOC_ARENA_MAX'] === undefined) missing.push('MALLOC_ARENA_MAX=1')
  return missing
}

/** Warns that a memory limit may be exceeded without these settings. */
export function warnOfMissingSettings(log: Log, settings: ProcessSettings = process): void {
  const missing = missingSettings(settings)
  if (missing.length === 0) return
  const help = `start the program with bin/tidings or the image, or set ${missing.join(' and ')}`
  log.warn('The process was started without settings that keep it within the memory limit', {
    missing,
    help,
  })
}
