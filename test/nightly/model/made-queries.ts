/** Random queries, as a client sends them. */
import type { Call } from '../../support/event-api.ts'
import type { Random } from '../../support/random.ts'
import {
  ACTIONS,
  type Choices,
  CLUSTERS,
  CONTROLLERS,
  INSTANCES,
  KINDS,
  momentMs,
  NAMES,
  NAMESPACES,
  NOTES,
  nameAt,
  OBJECTS,
  REASONS,
  TYPES,
  UIDS,
} from './made-events.ts'
import type { Order, PlainQuery, Term, Value } from './plain-query.ts'

export interface MadeQuery extends PlainQuery {
  /** The query uses the paths and field names of core/v1. */
  readonly isCore: boolean
  readonly format: 'json' | 'table'
  /** The order is a field label, and not a parameter. Undefined: none is sent. */
  readonly orderBy: 'label' | 'parameter' | undefined
  /** The label `limit`: so many events, and no further page. */
  readonly listMax: number | undefined
  /** The state that is queried: the newest, any that the server has, or an earlier one. */
  readonly of: 'newest' | 'any' | 'earlier'
  /** The limits of successive pages, in rotation; none: the whole list at once. */
  readonly limits: readonly number[]
}

/** The text of the field selector; the order of its terms has no meaning. */
export function fieldSelectorOf({ terms, order, orderBy, listMax }: MadeQuery): string {
  return [
    ...(listMax === undefined ? [] : [`limit=${listMax}`]),
    ...terms.map(
      ({ label, operator, values }) => `${label}${operator}${values.map(valueText).join('|')}`,
    ),
    ...(orderBy === 'label' ? [`order=${order}`] : []),
  ].join(',')
}

function valueText({ text, isPrefix }: Value): string {
  return `${text.replace(/[\\,=|*]/g, '\\$&')}${isPrefix === true ? '*' : ''}`
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** The request for it; `more` are further parameters. */
export function callOf(query: MadeQuery, more: NonNullable<Call['query']>): Call {
  const { cluster, namespace, isCore, format, order, orderBy, labelled } = query
  const base = isCore ? '/api/v1' : '/apis/events.k8s.io/v1'
  return {
    ...(cluster === 'local' ? {} : { cluster }),
    at: '',
    path: namespace === '' ? `${base}/events` : `${base}/namespaces/${namespace}/events`,
    query: {
      fieldSelector: fieldSelectorOf(query),
      ...(labelled === undefined ? {} : { labelSelector: labelled.join('=') }),
      ...(orderBy === 'parameter' ? { order } : {}),
      ...more,
    },
    ...(format === 'table' ? { headers: { accept: TABLE } } : {}),
  }
}

/** A query for a watch, which has no order and no pages. */
export function madeWatch(
  random: Random,
  nowMs: number,
  isCore: boolean = random.chance(0.2),
): MadeQuery {
  const list = madeQuery(random, nowMs, isCore)
  return { ...list, format: 'json', order: 'key', orderBy: undefined, listMax: undefined }
}

export function madeQuery(
  random: Random,
  nowMs: number,
  isCore: boolean = random.chance(0.2),
): MadeQuery {
  const format = random.chance(0.15) ? 'table' : 'json'
  const orderBy = random.chance(0.5) ? random.pick(['label', 'parameter'] as const) : undefined
  return {
    cluster: random.pick(['*', ...CLUSTERS]),
    namespace: random.chance(0.5) ? '' : random.pick([...NAMESPACES, 'none']),
    terms: allowed(
      Array.from({ length: random.pick([0, 1, 1, 1, 2, 2, 3, 4]) }, () =>
        madeTerm(random, { isCore, nowMs }),
      ),
    ),
    labelled: random.chance(0.05) ? ['app', random.pick(['web', 'db'])] : undefined,
    order: orderBy === undefined ? usualOrder(format) : random.pick<Order>(['oldest', 'newest']),
    orderBy,
    isCore,
    format,
    listMax: random.chance(0.1) ? random.pick([1, 2, 20, 500]) : undefined,
    of: random.chance(0.1) ? random.pick(['any', 'earlier'] as const) : 'newest',
    limits: madeLimits(random),
  }
}

/** Tables are for people. */
function usualOrder(format: MadeQuery['format']): Order {
  return format === 'table' ? 'oldest' : 'key'
}

function madeLimits(random: Random): readonly number[] {
  if (random.chance(0.3)) return []
  const limit = (): number => random.pick([1, 2, 3, 7, 20, 50, 499, 500])
  // Pages of one event are slow to follow to the end.
  return random.chance(0.7) ? [7 + random.below(60)] : [limit(), limit(), 100]
}

interface TermOptions {
  readonly isCore: boolean
  readonly nowMs: number
}

/** Without more texts than a selector may have, and without contradictions that are refused. */
function allowed(terms: readonly Term[]): readonly Term[] {
  const isText = ({ label }: Term): boolean => label === 'text' || label === 'search'
  return terms.filter((term, index) => {
    const before = terms.slice(0, index)
    if (isText(term)) return before.filter(isText).length < 2
    return !OWN_LABELS.test(term.label) || !before.some(({ label }) => label === term.label)
  })
}

const OWN_LABELS = /^(?:action|reportingInstance|controller|related\.\w+)$/

function madeTerm(random: Random, { isCore, nowMs }: TermOptions): Term {
  const either = random.chance(0.75) ? '=' : '!='
  const die = random.below(10)
  if (die < 2)
    return {
      label: random.pick(['since', 'since', 'until']),
      operator: '=',
      values: [{ text: madeMoment(random, nowMs) }],
    }
  if (die < 4) {
    return {
      label: 'mentions',
      operator: either,
      values: several(random, () => madeMention(random)),
    }
  }
  if (die < 5) {
    const label = random.pick(['text', 'search'])
    const values = Array.from({ length: random.pick([1, 1, 2]) }, () => ({
      text: madeText(random),
    }))
    return { label, operator: either, values }
  }
  const [label, values] = random.pick(isCore ? CORE_LABELS : LABELS)
  return { label, operator: either, values: several(random, () => madeValue(random, values)) }
}

/** Mostly one. */
function several(random: Random, make: () => Value): readonly Value[] {
  return Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, make)
}

function madeValue(random: Random, values: Choices): Value {
  const text = random.pick(values)
  return random.chance(0.15) && text !== '' ? beginning(random, text) : { text }
}

/** A part of a character cannot be sent in a URL. */
function beginning(random: Random, text: string): Value {
  const characters = [...text]
  const length = 1 + random.below(characters.length)
  return { text: characters.slice(0, length).join(''), isPrefix: true }
}

function madeMoment(random: Random, nowMs: number): string {
  if (random.chance(0.5)) {
    return random.pick([
      '20m',
      '1h',
      '30s',
      '1h30m',
      '90s',
      '0s',
      '2d',
      '1w',
      '1.5h',
      '100ms',
      '61s',
      '122s',
      '10m10s',
      '30m30s',
      '1d12h',
    ])
  }
  const text = new Date(momentMs(random, nowMs)).toISOString()
  return random.pick([text, `${text.slice(0, 19)}Z`, `${text.slice(0, 23)}000+00:00`])
}

function madeMention(random: Random): Value {
  if (random.chance(0.3)) return { text: random.pick([NO_UID, ...UIDS.filter(Boolean)]) }
  const kind = random.pick(['Pod', 'pod', 'POD', 'Node', 'deployment', 'istio', 'İstio', 's'])
  const name = random.pick(['web-0', 'web-1', 'web', 'ä', 'Web-0', 'none'])
  const value = random.chance(0.2) ? beginning(random, name) : { text: name }
  return { ...value, text: `${kind}/${value.text}` }
}

const NO_UID = '00000000-0000-4000-8000-000000000009'

function madeText(random: Random): string {
  if (random.chance(0.1))
    return random.pick(['ß', 'σ', 'ς', 'Σ', 'i̇', 'I', '\u2028', '\n', '"', 'ss'])
  const text = random.pick(random.pick([NOTES, NOTES, NOTES, REASONS, OBJECTS, KINDS]))
  const from = random.below(text.length + 1)
  const part = text.slice(from, from + 1 + random.below(12))
  // A half of a character cannot be sent in a URL.
  if (!part.isWellFormed() || part === '') return 'back'
  return random.pick([part, part.toUpperCase(), part.toLowerCase()])
}

type Label = readonly [label: string, values: Choices]

const REFERENCE: readonly [string, Choices][] = [
  ['kind', KINDS],
  ['namespace', NAMESPACES],
  ['name', OBJECTS],
  ['uid', UIDS],
  ['apiVersion', ['v1', 'apps/v1', '']],
  ['resourceVersion', ['17', '', 'v1']],
  ['fieldPath', ['spec.containers{app}', '']],
]

const COMMON: readonly [Label, ...Label[]] = [
  ['metadata.name', [nameAt(1), nameAt(NAMES - 1), nameAt(3), 'none']],
  ['metadata.namespace', [...NAMESPACES, 'none']],
  ['reason', REASONS],
  ['type', TYPES],
  ['type', ['Warning', 'Normal']],
  ['action', ACTIONS],
  ['reportingInstance', INSTANCES],
  ['controller', CONTROLLERS],
  ['name', OBJECTS],
  ...REFERENCE.map(([name, values]): Label => [`related.${name}`, values]),
]

const LABELS: readonly [Label, ...Label[]] = [
  ...COMMON,
  ['reportingController', CONTROLLERS],
  ...REFERENCE.map(([name, values]): Label => [`regarding.${name}`, values]),
]

const CORE_LABELS: readonly [Label, ...Label[]] = [
  ...COMMON,
  ['reportingComponent', CONTROLLERS],
  ['source', CONTROLLERS],
  ...REFERENCE.map(([name, values]): Label => [`involvedObject.${name}`, values]),
]
