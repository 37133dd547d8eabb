/** What a query means: filter all events of a state and sort them. */
import { type PlainEvent, textOf, treeOf } from './plain-event.ts'

export interface Term {
  readonly label: string
  readonly operator: '=' | '!='
  /** Any of these. */
  readonly values: readonly Value[]
}

export interface Value {
  readonly text: string
  /** Everything that begins with the text. */
  readonly isPrefix?: boolean | undefined
}

/** Reads `A|B*`, without escapes. */
export function valuesOf(text: string): readonly Value[] {
  return text
    .split('|')
    .map((one) => (one.endsWith('*') ? { text: one.slice(0, -1), isPrefix: true } : { text: one }))
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
  return terms.every(
    ({ label, operator, values }) =>
      values.some((value) => meets(event, label, value, nowMs)) === (operator === '='),
  )
}

function meets(event: PlainEvent, label: string, value: Value, nowMs: number): boolean {
  const { tree } = event
  switch (label) {
    case 'since':
      return event.lastSeenMs >= momentOf(value.text, nowMs)
    case 'until':
      return event.lastSeenMs < momentOf(value.text, nowMs)
    case 'mentions':
      return mentions(event, value)
    case 'text':
      return isIn(value.text, [textOf(tree, 'note'), textOf(tree, 'reason')])
    case 'search': {
      const objects = [treeOf(tree, 'regarding'), treeOf(tree, 'related')]
      const names = objects.flatMap((object) => [textOf(object, 'kind'), textOf(object, 'name')])
      const { name } = event.key
      return isIn(value.text, [textOf(tree, 'note'), textOf(tree, 'reason'), name, ...names])
    }
    default:
      return fits(fieldOf(event, label), value)
  }
}

function isIn(text: string, texts: readonly string[]): boolean {
  return texts.some((one) => one.toLowerCase().includes(text.toLowerCase()))
}

function fits(text: string, value: Value): boolean {
  return value.isPrefix === true ? text.startsWith(value.text) : text === value.text
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

const CORE_NAMES: Readonly<Record<string, string>> = {
  reportingComponent: 'reportingController',
  name: 'regarding.name',
}

function mentions({ tree }: PlainEvent, { text, isPrefix }: Value): boolean {
  const slash = text.indexOf('/')
  return ['regarding', 'related'].some((member) => {
    const object = treeOf(tree, member)
    if (slash === -1) return textOf(object, 'uid') === text
    const kind = text.slice(0, slash).toLowerCase()
    const name = { text: text.slice(slash + 1), isPrefix }
    return textOf(object, 'kind').toLowerCase() === kind && fits(textOf(object, 'name'), name)
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
    .map(({ values: [value] }) => momentOf(value?.text ?? '', nowMs))
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
