/** Checks for the settings with which the launcher, the image, the chart and the unit start Node. */

import type { Log } from '../lib/log/log.ts'

/** The launcher sets 8 MiB; more leaves more garbage in memory. */
const SEMI_SPACE_MIB_MAX = 16
const SEMI_SPACE = /--max[-_]semi[-_]space[-_]size[= ](\d+)/g
const OLD_SPACE = /--max[-_]old[-_]space[-_]size[= ](\d+)/g

export interface ProcessSettings {
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * The settings that are missing, as an operator would write them. With `limitMib`, V8 does not know
 * of the memory limit, and on a large machine lets its heap grow to four times its size before it
 * collects garbage, unless the heap is limited.
 */
export function missingSettings(
  { execArgv, env }: ProcessSettings,
  limitMib?: number,
): readonly string[] {
  const options = [env['NODE_OPTIONS'] ?? '', ...execArgv].join(' ')
  const nodeOptions: string[] = []
  if (lastMib(options, SEMI_SPACE) > SEMI_SPACE_MIB_MAX) {
    nodeOptions.push('--max-semi-space-size=8')
  }
  if (limitMib !== undefined && lastMib(options, OLD_SPACE) > limitMib) {
    nodeOptions.push(`--max-old-space-size=${Math.floor(limitMib / 2)}`)
  }
  const missing: string[] = []
  if (nodeOptions.length > 0) missing.push(`NODE_OPTIONS=${nodeOptions.join(' ')}`)
  if (env['MALLOC_ARENA_MAX'] === undefined) missing.push('MALLOC_ARENA_MAX=1')
  return missing
}

/** Node uses the last one. Infinite when there is none. */
function lastMib(options: string, setting: RegExp): number {
  return Number([...options.matchAll(setting)].at(-1)?.[1] ?? Number.POSITIVE_INFINITY)
}

/** Warns that the memory limit may be exceeded without these settings. */
export function warnOfMissingSettings(
  log: Log,
  limitMib?: number,
  settings: ProcessSettings = process,
): void {
  const missing = missingSettings(settings, limitMib)
  if (missing.length === 0) return
  log.warn('The process was started without settings that keep it within the memory limit', {
    missing,
    help: `set ${missing.join(' and ')}, as the chart and the systemd unit do`,
  })
}
