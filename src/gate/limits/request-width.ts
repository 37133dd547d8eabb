import { queryBoolean } from '../../api/query-boolean.ts'
import { ALL_CLUSTERS } from '../attributes.ts'
import { COLLECTION_VERBS, type ResourceTarget, type Target } from '../target.ts'

/**
 * A list takes one slot for this many events, and at most WIDTH_MAX slots. Lists keep the CPU busy:
 * many at once are no faster, and all other requests wait for all of them.
 */
const EVENTS_PER_SLOT = 100
const WIDTH_MAX = 20

/**
 * How many slots a request takes. The time and memory of a list grow with the number of events, so
 * its width does as well.
 */
export function widthOf(target: Target): number {
  const { verb, query } = target
  if (!COLLECTION_VERBS.has(verb)) return 1
  if (isOfOneKey(target)) return 1
  if (verb === 'watch' && isFromVersion(query)) return 1
  if (target.isResource && isOfOneObject(target)) return 1
  // A summary reads every event, however little it shows.
  if (target.isResource && SUMMARIES.has(target.resource)) return WIDTH_MAX
  // A page of a selection may have to read every event.
  if (query.has('labelSelector') || query.has('fieldSelector')) return WIDTH_MAX
  // A watch ignores the limit and sends all events first.
  const limit = verb === 'watch' ? 0 : Number(query.get('limit') ?? 0)
  return limit > 0 ? Math.min(Math.ceil(limit / EVENTS_PER_SLOT), WIDTH_MAX) : WIDTH_MAX
}

const SUMMARIES: ReadonlySet<string> = new Set([
  'eventsummaries',
  'eventhistograms',
  'retentionwindows',
])

/** Without its namespace or its cluster, an event of that name is searched for among all. */
function isOfOneKey(target: Target): boolean {
  if (!target.isResource || target.cluster === ALL_CLUSTERS) return false
  return target.name !== '' && target.namespace !== ''
}

/** The events of one object are few, and an index of the present state finds them. */
function isOfOneObject({ fields, query }: ResourceTarget): boolean {
  if (fields instanceof Error || isOfOldState(query)) return false
  return fields.some(
    ({ field, operator, value }) => field === 'regarding.uid' && operator === '=' && value !== '',
  )
}

/** Such a state may have to be read from etcd, where no index helps. */
function isOfOldState(query: URLSearchParams): boolean {
  if (query.has('continue')) return true
  const isExact = query.get('resourceVersionMatch') === 'Exact' || query.has('limit')
  return isExact && hasVersion(query)
}

/** Such a watch sends only changes after a version, unless it requests the initial events too. */
function isFromVersion(query: URLSearchParams): boolean {
  return hasVersion(query) && queryBoolean(query, 'sendInitialEvents') !== true
}

/** Whether a version is requested; an empty one and one of zeros only stand for any version. */
function hasVersion(query: URLSearchParams): boolean {
  return !/^0*$/.test(query.get('resourceVersion') ?? '')
}
