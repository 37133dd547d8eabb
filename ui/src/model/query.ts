/** What the page shows: the view, the filters and the time range. All of it is in the URL. */
import { readRange, type TimeRange, writeRange } from './range.ts'

export const VIEWS = ['overview', 'lanes', 'object', 'tail', 'sources', 'clusters'] as const
export type View = (typeof VIEWS)[number]

/** Empty texts filter nothing. */
export interface Filters {
  /** Empty: the cluster of paths without a cluster. `*`: all clusters. */
  readonly cluster: string
  readonly namespace: string
  /** Of the object that an event is about. */
  readonly kind: string
  readonly object: string
  readonly reason: string
  readonly type: string
  readonly controller: string
  /** Contained in the note or the reason. */
  readonly text: string
}

export interface Query extends Filters {
  readonly view: View
  readonly range: TimeRange
  /** The object of the view `object`: `Pod/shop/web-0`, `Node/node-1`, or a uid. */
  readonly about: string
  /** The order of lanes. Undefined: the newest first. */
  readonly sort?: LaneSort
  /** The order of sources. Undefined: by count. */
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
  'reason',
  'type',
  'controller',
  'text',
]

/** Names are no longer, and the server refuses longer texts. */
export const FILTER_LENGTH_MAX = 256
/** A kind, a namespace and a name. */
const ABOUT_LENGTH_MAX = 1_024

export const NO_FILTERS: Filters = {
  cluster: '',
  namespace: '',
  kind: '',
  object: '',
  reason: '',
  type: '',
  controller: '',
  text: '',
}

/** Reads the query string of a URL. What it does not understand, it ignores. */
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
    ...(sort === undefined ? {} : { sort }),
    ...(parameters.get('order') === 'rate' ? { order: 'rate' } : {}),
  }
}

/** The query string, without what is as by default. Begins with `?`, or is empty. */
export function writeQuery(query: Query): string {
  const parameters = new URLSearchParams()
  if (query.view !== 'overview') parameters.set('view', query.view)
  for (const name of FILTERS) if (query[name] !== '') parameters.set(name, query[name])
  writeRange(query.range, parameters)
  if (query.view === 'object' && query.about !== '') parameters.set('about', query.about)
  const { sort = 'newest' } = query
  if (query.view === 'lanes' && sort !== 'newest') parameters.set('sort', sort)
  if (query.view === 'sources' && query.order === 'rate') parameters.set('order', 'rate')
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** What is asked for, as one text: it is the same while only time passes. */
export function questionOf(query: Filters & Pick<Query, 'range'>): string {
  return JSON.stringify([FILTERS.map((name) => query[name]), query.range])
}
