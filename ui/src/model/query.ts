/** What the page shows: the view, the filters and the time range. All of it is in the URL. */
import { readRange, type TimeRange, writeRange } from './range.ts'

export const VIEWS = ['overview', 'lanes', 'object', 'tail', 'sources', 'clusters'] as const
export type View = (typeof VIEWS)[number]

/** Empty strings do not filter. */
export interface Filters {
  /** Empty for the cluster of paths without a cluster; `*` for all clusters. */
  readonly cluster: string
  readonly namespace: string
  /** Kind of the object that an event is about. */
  readonly kind: string
  readonly object: string
  /** `Deployment/web`: finds the events of its pods as well. */
  readonly workload: string
  readonly node: string
  readonly reason: string
  /** The id that notes with the same wording have in common. */
  readonly pattern: string
  readonly type: string
  readonly controller: string
  /** Substring of the note or the reason. */
  readonly text: string
}

export interface Query extends Filters {
  readonly view: View
  readonly range: TimeRange
  /** The object of the view `object`: `Pod/shop/web-0`, `Node/node-1`, or a uid. */
  readonly about: string
  /** Whether all of history is searched for the events of that object. */
  readonly history?: 'all' | undefined
  /** Order of lanes. Undefined for newest first. */
  readonly sort?: LaneSort
  /** Order of sources. Undefined for by count. */
  readonly order?: SourceOrder
}

export type SourceOrder = 'count' | 'rate'

export const LANE_SORTS = ['newest', 'warnings', 'name'] as const
export type LaneSort = (typeof LANE_SORTS)[number]

export type FilterName = keyof Filters

export const FILTERS: readonly FilterName[] = [
  'cluster',
  'namespace',
  'kind',
  'object',
  'workload',
  'node',
  'reason',
  'pattern',
  'type',
  'controller',
  'text',
]

/** Names are never longer, and the server rejects longer texts. */
export const FILTER_LENGTH_MAX = 256
/** Fits a kind, a namespace and a name. */
const ABOUT_LENGTH_MAX = 1_024

export const NO_FILTERS: Filters = {
  cluster: '',
  namespace: '',
  kind: '',
  object: '',
  workload: '',
  node: '',
  reason: '',
  pattern: '',
  type: '',
  controller: '',
  text: '',
}

/** Parses a URL's query string. Ignores what it does not understand. */
export function readQuery(search: string): Query {
  const parameters = new URLSearchParams(search)
  const filters = Object.fromEntries(
    FILTERS.map((name) => [name, (parameters.get(name) ?? '').slice(0, FILTER_LENGTH_MAX)]),
  ) as unknown as Filters
  const about = (parameters.get('about') ?? '').slice(0, ABOUT_LENGTH_MAX)
  const view = VIEWS.find((one) => one === parameters.get('view')) ?? 'overview'
  const sort = LANE_SORTS.find((one) => one === parameters.get('sort'))
  return {
    ...filters,
    view,
    range: readRange(parameters),
    about,
    ...(parameters.get('history') === 'all' ? { history: 'all' } : {}),
    ...(sort === undefined ? {} : { sort }),
    ...(parameters.get('order') === 'rate' ? { order: 'rate' } : {}),
  }
}

/** Returns the query string without parameters at their defaults. Begins with `?`, or is empty. */
export function writeQuery(query: Query): string {
  const parameters = new URLSearchParams()
  if (query.view !== 'overview') parameters.set('view', query.view)
  for (const name of FILTERS) if (query[name] !== '') parameters.set(name, query[name])
  writeRange(query.range, parameters)
  if (query.view === 'object' && query.about !== '') {
    parameters.set('about', query.about)
    if (query.history !== undefined) parameters.set('history', query.history)
  }
  const { sort = 'newest' } = query
  if (query.view === 'lanes' && sort !== 'newest') parameters.set('sort', sort)
  if (query.view === 'sources' && query.order === 'rate') parameters.set('order', 'rate')
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** The query as one string, which does not change while only time passes. */
export function questionOf(query: Filters & Pick<Query, 'range'>): string {
  return JSON.stringify([FILTERS.map((name) => query[name]), query.range])
}
