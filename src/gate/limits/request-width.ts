import { queryBoolean } from '../../api/query-boolean.ts'
import { requiredValue } from '../../api/selectors/field-selector.ts'
import type { Request } from '../../http/exchange.ts'
import type { StoredSizes } from '../../storage/stored-sizes.ts'
import { ALL_CLUSTERS } from '../attributes.ts'
import { COLLECTION_VERBS, type ResourceTarget, type Target } from '../target.ts'

/**
 * A list takes one slot per EVENTS_PER_SLOT events or BYTES_PER_SLOT bytes, and at most WIDTH_MAX
 * slots. Lists are CPU-bound: many at once are no faster, and all other requests wait for all of
 * them.
 */
const EVENTS_PER_SLOT = 100
const BYTES_PER_SLOT = 256 * 1024
/** Comparing an event with a selector costs a fraction of sending it. */
const SEARCHED_PER_SLOT = 5000
const WIDTH_MAX = 20
/** YAML takes ten times the CPU time of JSON, which is sent as it is stored. */
const YAML_COST = 10
/** Assumed where the bytes are not counted. */
const EVENT_BYTES_MIN = 1024

/**
 * Returns how many slots a request takes: one, unless it lists. The work of a list is estimated
 * from the number and size of events in its namespace. Without `sizes`, every list without a limit
 * is long.
 */
export function widthOf(
  target: Target,
  { headers }: Pick<Request, 'headers'>,
  sizes?: Pick<StoredSizes, 'of'>,
): number {
  if (!target.isResource || !isLong(target)) return 1
  const { verb, query } = target
  const stored = sizes?.of(target.cluster, target.namespace || undefined)
  // A watch ignores the limit and sends all events first.
  const limit = verb === 'watch' ? 0 : Number(query.get('limit') ?? 0)
  if (stored === undefined) {
    const isBounded = limit > 0 && !isSearch(target)
    return isBounded ? slots(limit / EVENTS_PER_SLOT) : WIDTH_MAX
  }
  const events = limit > 0 ? Math.min(limit, stored.events) : stored.events
  const eventBytes = Math.max(stored.bytes / Math.max(1, stored.events), EVENT_BYTES_MIN)
  const formCost = /yaml/i.test(headers['accept'] ?? '') ? YAML_COST : 1
  return slots(
    Math.max(
      events / EVENTS_PER_SLOT,
      (events * eventBytes * formCost) / BYTES_PER_SLOT,
      isSearch(target) ? stored.events / SEARCHED_PER_SLOT : 0,
    ),
  )
}

/** Returns whether it may read or send many events. */
function isLong(target: ResourceTarget): boolean {
  const { verb, query } = target
  if (!COLLECTION_VERBS.has(verb) || isOfOneKey(target)) return false
  if (verb === 'watch' && isFromVersion(query)) return false
  return !isOfOneObject(target)
}

function slots(work: number): number {
  return Math.min(Math.max(1, Math.ceil(work)), WIDTH_MAX)
}

/** Returns whether it may have to read every event to find those that match. */
function isSearch({ query, resource }: ResourceTarget): boolean {
  if (SUMMARIES.has(resource)) return true
  return SEARCH_OPTIONS.some((option) => query.has(option)) || isOfOldState(query)
}

const SEARCH_OPTIONS = ['labelSelector', 'fieldSelector', 'shardSelector', 'order']

const SUMMARIES: ReadonlySet<string> = new Set([
  'eventsummaries',
  'eventhistograms',
  'retentionwindows',
])

/** A name alone is not a key: without namespace and cluster, all events are searched for it. */
function isOfOneKey(target: ResourceTarget): boolean {
  if (target.cluster === ALL_CLUSTERS) return false
  return target.name !== '' && target.namespace !== ''
}

/** The events of one object are few, and an index of the current state finds them. */
function isOfOneObject({ fields, query }: ResourceTarget): boolean {
  if (fields instanceof Error || isOfOldState(query)) return false
  if (fields.some(({ field }) => field === 'text' || field === 'search')) return false
  return (requiredValue(fields, 'regarding.uid') ?? '') !== ''
}

/** An old state may have to be read from etcd, where no index helps. */
function isOfOldState(query: URLSearchParams): boolean {
  if (query.has('continue')) return true
  const isExact = query.get('resourceVersionMatch') === 'Exact' || query.has('limit')
  return isExact && hasVersion(query)
}

/** A watch from a version sends only later changes, unless it requests the initial events too. */
function isFromVersion(query: URLSearchParams): boolean {
  return hasVersion(query) && queryBoolean(query, 'sendInitialEvents') !== true
}

/**
 * Returns whether a version is requested. An empty one, or one of zeros only, means any version.
 */
function hasVersion(query: URLSearchParams): boolean {
  return !/^0*$/.test(query.get('resourceVersion') ?? '')
}
