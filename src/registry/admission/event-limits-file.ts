import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnLook } from '../../lib/files/follow.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { yamlDocuments } from '../../lib/text/yaml-documents.ts'
import {
  type ConfiguredLimitType,
  EVENT_LIMIT_TYPES,
  type EventLimit,
  type EventLimits,
} from './event-limits.ts'

const FILE_BYTES_MAX = 64 * 1024
const LIMITS_MAX = 100
const RATE_MAX = 2 ** 31 - 1
/** A bucket takes about a hundred bytes. */
const CACHE_SIZE_MAX = 1_000_000
const CACHE_SIZE_DEFAULT = 4096
const API_VERSION = 'eventratelimit.admission.k8s.io/v1alpha1'

/**
 * Polls the file and applies its content to `limits`. Rejects if the file cannot be used; the error
 * has its path. While a changed file cannot be used, the last usable content stays in effect.
 */
export async function followEventLimits(
  limits: Pick<EventLimits, 'replace'>,
  path: string,
  log: Log,
  onLook?: OnLook,
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
    onMended: () => log.info('Event rate limits valid again, unchanged', { file: path }),
    onLook,
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
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${path}: ${why}`, { cause })
  }
}

/** Throws an error that says which field of the file is wrong. */
export function readEventLimits(text: string): readonly EventLimit[] {
  const [document, second] = [...yamlDocuments(text)]
  if (document === undefined) throw new Error('the file is empty')
  if (second !== undefined) throw new Error('the file has more than one document')
  const configuration = objectOf(document.value, 'the document', ['apiVersion', 'kind', 'limits'])
  if (
    memberOf(configuration, 'apiVersion') !== API_VERSION ||
    memberOf(configuration, 'kind') !== 'Configuration'
  ) {
    throw new Error(
      `must be a Configuration: set apiVersion: ${API_VERSION} and kind: Configuration`,
    )
  }
  const limits = memberOf(configuration, 'limits')
  if (!Array.isArray(limits) || limits.length === 0) {
    throw new Error('limits: at least one is required')
  }
  if (limits.length > LIMITS_MAX) throw new Error(`limits: at most ${LIMITS_MAX}`)
  return limits.map((limit, at) => readLimit(limit, `limits[${at}]`))
}

function readLimit(value: Json, where: string): EventLimit {
  const limit = objectOf(value, where, ['type', 'qps', 'burst', 'cacheSize'])
  const type = memberOf(limit, 'type')
  if (!isType(type)) {
    throw new Error(`${where}.type: must be one of ${EVENT_LIMIT_TYPES.join(', ')}`)
  }
  const number = (name: string, range: { readonly min: number; readonly max: number }): number =>
    numberOf(memberOf(limit, name) ?? 0, `${where}.${name}`, range)
  const cacheSize = number('cacheSize', { min: 0, max: CACHE_SIZE_MAX })
  return {
    type,
    unit: 'events',
    rate: number('qps', { min: 1, max: RATE_MAX }),
    burst: number('burst', { min: 1, max: RATE_MAX }),
    cacheSize: cacheSize === 0 ? CACHE_SIZE_DEFAULT : cacheSize,
  }
}

/** Unknown fields are errors: a misspelt one would otherwise be a limit without effect. */
function objectOf(value: Json, where: string, names: readonly string[]): JsonObject {
  if (!isObject(value)) throw new Error(`${where}: must be a mapping`)
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new Error(`${where}: unknown field "${unknown}", known are ${names.join(', ')}`)
  }
  return value
}

function numberOf(
  value: Json,
  where: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw new Error(`${where}: must be an integer from ${min} to ${max}`)
  }
  return value
}

function isType(value: Json | undefined): value is ConfiguredLimitType {
  return EVENT_LIMIT_TYPES.some((type) => type === value)
}
