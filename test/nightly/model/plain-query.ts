/** What a query means: filter all events of a state and sort them. */
import { type PlainEvent, textOf, treeOf } from './plain-event.ts'

export interface Term {
  readonly label: string
  readonly operator: '=' | '!='
  readonly value: string
}

export type Order = 'key' | 'oldest' | 'newest'

/** The part of a query that decides which events it lists, and in which order. */
export interface PlainQuery {
  /** `*`: all clusters. */
  readonly cluster: string
  /** Empty: all namespaces. */
  readonly namespace: string
  readonly terms: readonly Term[]
  /** A label and its value that the events must have. */
  readonly labelled?: readonly [string, string] | undefined
  readonly order: Order
}

export function answer(
  state: readonly PlainEvent[],
  query: PlainQuery,
  nowMs: number,
): readonly PlainEvent[] {
  return state.filter((event) => matches(event, query, nowMs)).sort(comparing(query.order))
}

export function matches(event: PlainEvent, query: PlainQuery, nowMs: number): boolean {
  const { cluster, namespace, terms, labelled } = query
  if (cluster !== '*' && cluster !== event.key.cluster) return false
  if (namespace !== '' && namespace !== event.key.namespace) return false
  if (labelled !== undefined) {
    const labels = treeOf(treeOf(event.tree, 'metadata'), 'labels')
    if (textOf(labels, labelled[0]) !== labelled[1]) return false
  }
  return terms.every((term) => meets(event, term, nowMs) === (term.operator === '='))
}

function meets(event: PlainEvent, { label, value }: Term, nowMs: number): boolean {
  switch (label) {
    case 'since':
      return event.lastSeenMs >= momentOf(value, nowMs)
    case 'until':
      return event.lastSeenMs < momentOf(value, nowMs)
    case 'mentions':
      return mentions(event, value)
    case 'text':
      return [textOf(event.tree, 'note'), textOf(event.tree, 'reason')].some((text) =>
        text.toLowerCase().includes(value.toLowerCase()),
      )
    default:
      return fieldOf(event, label) === value
  }
}

function fieldOf({ key, tree }: PlainEvent, label: string): string {
  if (label === 'metadata.name') return key.name
  if (label === 'metadata.namespace') return key.namespace
  if (label === 'controller') {
    const controller = textOf(tree, 'reportingController')
    return controller === '' ? textOf(treeOf(tree, 'deprecatedSource'), 'component') : controller
  }
  if (label === 'source') {
    const component = textOf(treeOf(tree, 'deprecatedSource'), 'component')
    return component === '' ? textOf(tree, 'reportingController') : component
  }
  const [first = '', second] = (CORE_NAMES[label] ?? label)
    .replace(/^involvedObject\./, 'regarding.')
    .split('.')
  return second === undefined ? textOf(tree, first) : textOf(treeOf(tree, first), second)
}

const CORE_NAMES: Readonly<Record<string, string>> = { reportingComponent: 'reportingController' }

function mentions({ tree }: PlainEvent, value: string): boolean {
  const slash = value.indexOf('/')
  return ['regarding', 'related'].some((member) => {
    const object = treeOf(tree, member)
    if (slash === -1) return textOf(object, 'uid') === value
    const kind = value.slice(0, slash).toLowerCase()
    const name = value.slice(slash + 1)
    return textOf(object, 'kind').toLowerCase() === kind && textOf(object, 'name') === name
  })
}

/** The times of all `since`, or of all `until`, of a query, ascending. */
export function momentsOf(
  { terms }: Pick<PlainQuery, 'terms'>,
  label: 'since' | 'until',
  nowMs: number,
): readonly number[] {
  return terms
    .filter((term) => term.label === label)
    .map(({ value }) => momentOf(value, nowMs))
    .sort((one, other) => one - other)
}

/** A time, or a duration before now. */
function momentOf(value: string, nowMs: number): number {
  if (!/^([\d.]+(ms|[smhdw]))+$/.test(value)) return Date.parse(value)
  let ms = 0
  for (const [, number, unit = ''] of value.matchAll(/([\d.]+)(ms|[smhdw])/g)) {
    ms += Number(number) * (UNIT_MS[unit] ?? Number.NaN)
  }
  return nowMs - ms
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

function comparing(order: Order): (one: PlainEvent, other: PlainEvent) => number {
  if (order === 'key') return byKey
  if (order === 'oldest') return byTime
  return (one, other) => -byTime(one, other)
}

function byTime(one: PlainEvent, other: PlainEvent): number {
  return one.lastSeenMs - other.lastSeenMs || byKey(one, other)
}

function byKey(one: PlainEvent, other: PlainEvent): number {
  return Buffer.compare(one.path, other.path)
}
