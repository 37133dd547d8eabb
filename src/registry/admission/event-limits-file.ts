import { readBounded } from '../../lib/files/bounded-file.ts'
import {
  configurationIn,
  errorIn,
  listOf,
  mistake,
  objectOf,
} from '../../lib/files/config-fields.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import { type Json, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { EVENT_LIMIT_TYPES, type EventLimit, type EventLimits } from './event-limits.ts'

const FILE_BYTES_MAX = 64 * 1024
const LIMITS_MAX = 100
const RATE_MAX = 2 ** 31 - 1
/** A bucket takes about a hundred bytes. */
const CACHE_SIZE_MAX = 1_000_000
const CACHE_SIZE_DEFAULT = 4096
const API_VERSION = 'eventratelimit.admission.k8s.io/v1alpha1'

/**
 * Polls the file and applies its content to `limits`. Rejects if the file is invalid; the error names
 * its path. While a changed file is invalid, the last valid content stays in effect.
 */
export async function followEventLimits(
  limits: Pick<EventLimits, 'replace'>,
  path: string,
  log: Log,
  onPoll?: OnPoll,
): Promise<{ stop(): void }> {
  const first = await load(path)
  limits.replace(first.limits)
  return follow({
    inUse: first,
    load: (current) => load(path, current),
    onChange: (found) => {
      limits.replace(found.limits)
      log.info('Event rate limits reloaded', { file: path, count: found.limits.length })
    },
    onProblem: (err) => log.warn('Event rate limits not reloaded', { err }),
    onRecovered: () => log.info('Event rate limits valid again, unchanged', { file: path }),
    onPoll,
  })
}

interface LimitsFile {
  readonly content: Buffer
  readonly limits: readonly EventLimit[]
}

/** Returns `current` itself when the content of the file is unchanged. */
async function load(path: string, current?: LimitsFile): Promise<LimitsFile> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  try {
    return { content, limits: readEventLimits(content.toString()) }
  } catch (cause) {
    throw errorIn(path, cause)
  }
}

/** Throws an error that names the invalid field. */
export function readEventLimits(text: string): readonly EventLimit[] {
  const document = configurationIn(text, { apiVersion: API_VERSION, kind: 'Configuration' })
  const configuration = objectOf(document, '', ['apiVersion', 'kind', 'limits'])
  const limits = listOf(configuration, 'limits', '', LIMITS_MAX)
  if (limits.length === 0) throw mistake('limits', 'at least one is required')
  return limits.map((limit, index) => readLimit(limit, `limits[${index}]`))
}

function readLimit(value: Json, at: string): EventLimit {
  const limit = objectOf(value, at, ['type', 'qps', 'burst', 'cacheSize'])
  const type = EVENT_LIMIT_TYPES.find((one) => one === memberOf(limit, 'type'))
  if (type === undefined) {
    throw mistake(`${at}.type`, `must be one of ${EVENT_LIMIT_TYPES.join(', ')}`)
  }
  const number = (name: string, min: number, max: number): number => {
    const given = memberOf(limit, name) ?? 0
    if (typeof given === 'number' && Number.isInteger(given) && given >= min && given <= max) {
      return given
    }
    throw mistake(`${at}.${name}`, `must be an integer from ${min} to ${max}`)
  }
  return {
    type,
    unit: 'events',
    rate: number('qps', 1, RATE_MAX),
    burst: number('burst', 1, RATE_MAX),
    cacheSize: number('cacheSize', 0, CACHE_SIZE_MAX) || CACHE_SIZE_DEFAULT,
  }
}
