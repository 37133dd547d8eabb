/**
 * The syntax of `fieldSelector`: `a=b`, `a==b`, `a!=b`, joined by commas that mean "and". A value may
 * be several, or the beginning of values; see value-pattern.ts. In a value, `\`, `,`, `=`, `|` and `*`
 * are escaped with a backslash. Empty terms are ignored.
 *
 * Some labels are options of the query rather than fields, since kubectl can send any selector but
 * no query parameters.
 */
import { ownText } from '../../lib/text/own-text.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest, type StatusError } from '../status.ts'
import { checkSelectorBytes, REQUIREMENTS_MAX } from './label-selector.ts'
import {
  exactly,
  parsePatterns,
  parseTexts,
  soleValue,
  type ValuePattern,
} from './value-pattern.ts'

/**
 * The selectable fields, by their names in events.k8s.io. `source` is supported in core/v1 only.
 */
export type SelectableField =
  | (typeof commonFields)[number]
  | `${'regarding' | 'related'}.${ReferenceField}`
  | 'reportingController'
  | 'source'

type ReferenceField = (typeof referenceFields)[number]

const referenceFields = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
] as const

export interface FieldRequirement {
  readonly field: SelectableField
  /** The name of the field in the selector. */
  readonly label: string
  readonly operator: '=' | '!='
  /** `=` requires that one of them matches, `!=` that none does. There is at least one. */
  readonly patterns: readonly ValuePattern[]
}

/** Keyed by the labels of one API group. */
export type FieldNames = ReadonlyMap<string, FieldName>

interface FieldName {
  /** A copy that no query has to be retained for. */
  readonly label: string
  readonly field: SelectableField
}

/** Fields that both API groups have under the same name. */
const commonFields = [
  'metadata.name',
  'metadata.namespace',
  'reason',
  'type',
  'action',
  'reportingInstance',
  // The others are not fields of the object: the controller that reported the event, in whichever
  // field it is named; bounds of the time when it was last seen; an object that it is about; a text
  // in its note or reason; a text in these or in the names and kinds of its objects; and its
  // workload, node and pattern.
  'controller',
  'since',
  'until',
  'mentions',
  'text',
  'search',
  'workload',
  'node',
  'pattern',
] as const

const commonNames: readonly NamedField[] = [
  ...commonFields.map((name) => [name, name] as const),
  ...referenceFields.map((name) => [`related.${name}`, `related.${name}`] as const),
  ['name', 'regarding.name'],
]

type NamedField = readonly [label: string, field: SelectableField]

export const eventFieldNames: FieldNames = fieldNames([
  ...commonNames,
  ...referenceFields.map((name) => [`regarding.${name}`, `regarding.${name}`] as const),
  ['reportingController', 'reportingController'],
])

export const coreFieldNames: FieldNames = fieldNames([
  ...commonNames,
  ...referenceFields.map((name) => [`involvedObject.${name}`, `regarding.${name}`] as const),
  ['reportingComponent', 'reportingController'],
  ['source', 'source'],
])

/** Accepts the names of both APIs. */
export const anyFieldNames: FieldNames = new Map([...coreFieldNames, ...eventFieldNames])

/** Applies to objects that have none of the fields of events. */
export const nameFieldOnly: FieldNames = fieldNames([['metadata.name', 'metadata.name']])

function fieldNames(fields: readonly NamedField[]): FieldNames {
  return new Map(fields.map(([label, field]) => [label, { label, field }]))
}

/** The patterns that the field must match one of; undefined if none are required. */
export function requiredPatterns(
  fields: readonly FieldRequirement[],
  field: SelectableField,
): readonly ValuePattern[] | undefined {
  const required = fields.filter((one) => one.field === field && one.operator === '=')
  return (required.find(({ patterns }) => soleValue(patterns) !== undefined) ?? required[0])
    ?.patterns
}

/** The value that the field must have, if only one is possible. */
export function requiredValue(
  fields: readonly FieldRequirement[],
  field: SelectableField,
): string | undefined {
  return soleValue(requiredPatterns(fields, field) ?? [])
}

/** A query option that may be sent as a field label. */
export type OptionName = 'order' | 'limit' | 'groupBy' | 'buckets' | 'by' | 'compare'

export interface QueryOption {
  readonly name: OptionName
  readonly value: string
}

export const eventOptionNames: readonly OptionName[] = ['limit', 'order']
export const summaryOptionNames: readonly OptionName[] = ['groupBy', 'limit', 'order', 'compare']
export const histogramOptionNames: readonly OptionName[] = ['buckets', 'by', 'limit']

export interface ParsedSelector {
  readonly fields: readonly FieldRequirement[]
  readonly options: readonly QueryOption[]
}

/** Parses a selector without options. Throws a 400 that names the invalid part. */
export function parseFieldSelector(
  text: string,
  names: FieldNames = eventFieldNames,
): readonly FieldRequirement[] {
  return parseSelector(text, names, []).fields
}

/** Parses a selector that may have these options. Throws a 400 that names the invalid part. */
export function parseSelector(
  text: string,
  names: FieldNames,
  optionNames: readonly OptionName[],
): ParsedSelector {
  const fields: FieldRequirement[] = []
  const options: QueryOption[] = []
  for (const term of termsOf(text, names)) {
    const option = optionNames.find((one) => one === term.name)
    if (option === undefined) {
      fields.push(requirementOf(term, names))
      continue
    }
    if (term.operator !== '=') throw badRequest(`${option} is an option: write ${option}=<value>`)
    if (options.some((one) => one.name === option)) {
      throw badRequest(`the option ${option} is in the field selector twice`)
    }
    options.push({ name: option, value: ownText(term.value) })
  }
  const values = fields.reduce((sum, { patterns }) => sum + patterns.length, 0)
  if (values > REQUIREMENTS_MAX) {
    throw badRequest(`a field selector has at most ${REQUIREMENTS_MAX} values`)
  }
  return { fields, options }
}

function requirementOf(
  { name, operator, value, escaped }: Term,
  names: FieldNames,
): FieldRequirement {
  const found = names.get(name)
  if (found === undefined) {
    throw badRequest(`field label not supported: ${truncate(name)}${hintForLabel(name)}`)
  }
  const { field, label } = found
  const isBound = field === 'since' || field === 'until'
  const parse = field === 'text' || field === 'search' ? parseTexts : parsePatterns
  const patterns = isBound ? exactly(ownText(value)) : parse(label, escaped)
  return { field, label, operator, patterns }
}

/** Labels that people try, and what they should write. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ['kind', 'for the kind of the object write involvedObject.kind or regarding.kind'],
  ['namespace', 'write metadata.namespace'],
  ['object', 'write mentions=<kind>/<name>'],
  ['pod', 'write mentions=Pod/<name>'],
  ['deployment', 'write workload=Deployment/<name>'],
  ['groupby', 'groups are in kubectl get eventsummaries, as groupBy=<field>'],
  ['compare', 'comparisons are in kubectl get eventsummaries'],
])

function hintForLabel(name: string): string {
  const hint = HINTS.get(name.toLowerCase())
  return hint === undefined ? '' : `; ${hint}`
}

function termsOf(text: string, names: FieldNames): readonly Term[] {
  if (text === '') return []
  checkSelectorBytes(text, 'field')
  const terms = splitTerms(text)
  if (terms.length > REQUIREMENTS_MAX) {
    throw badRequest(`a field selector has at most ${REQUIREMENTS_MAX} requirements`)
  }
  // Sorted, so that the same one of several errors is always reported.
  return terms
    .toSorted()
    .map((term) => splitTerm(term) ?? notUnderstood(term, text, names))
    .filter(({ name, value }) => name !== '' || value !== '')
}

function splitTerms(text: string): readonly string[] {
  const terms: string[] = []
  let start = 0
  for (let index = 0; index <= text.length; index++) {
    if (text[index] === '\\') index++
    else if (index === text.length || text[index] === ',') {
      if (index > start) terms.push(text.slice(start, index))
      start = index + 1
    }
  }
  if (start < text.length) terms.push(text.slice(start))
  return terms
}

interface Term {
  readonly name: string
  readonly operator: '=' | '!='
  readonly value: string
  /** The value as it was sent. */
  readonly escaped: string
}

/** Undefined if the term has no operator. */
function splitTerm(term: string): Term | undefined {
  const match = /!=|==?/.exec(term)
  if (match === null) return undefined
  const escaped = term.slice(match.index + match[0].length)
  return {
    name: term.slice(0, match.index),
    operator: match[0] === '!=' ? '!=' : '=',
    value: unescaped(escaped),
    escaped,
  }
}

function notUnderstood(term: string, whole: string, names: FieldNames): never {
  const hint = groupByHint(whole) ?? severalValuesHint(whole, names)
  const what = `invalid selector: '${truncate(whole)}'; can't understand '${truncate(term)}'`
  throw badRequest(hint === undefined ? what : `${what}; ${hint}`)
}

/** Commas separate the fields of `groupBy` in a query parameter, but terms in a selector. */
function groupByHint(whole: string): string | undefined {
  if (!/(?:^|,)groupBy=/.test(whole)) return undefined
  return 'in a field selector join the fields by +: groupBy=reason+controller'
}

/** For `reason in (A,B)`, which only label selectors have, `reason=(A,B)` and `reason=A,B`. */
function severalValuesHint(whole: string, names: FieldNames): string | undefined {
  for (const [, label = '', inList, not, sign, list = ''] of whole.matchAll(listLike)) {
    const values = list.split(',').map((value) => value.trim())
    if (!names.has(label) || values.some((value) => names.has(value))) continue
    if (inList === undefined && values.length === 1) continue
    const operator = sign ?? (not === undefined ? '=' : '!=')
    return `for several values write ${truncate(`${label}${operator}${values.join('|')}`)}`
  }
  return undefined
}

const listLike = /(?:^|,) *([\w.]+)(?:( +(not)?in *\()|(!?=)=?\(?)([^=!()]*)\)?(?=,|$)/gi

function unescaped(value: string): string {
  if (!/[\\=]/.test(value)) return value
  return value.replace(/\\(.?)|=/gsu, (sequence, character: string | undefined) => {
    if (character === undefined)
      throw invalidSelector(`unescaped character in value: ${equalsSign}`)
    if (!escapable.includes(character))
      throw invalidSelector(`invalid escape sequence: ${sequence}`)
    return character
  })
}

/** The last two have a meaning in values of this server only. */
const escapable = ['\\', ',', '=', '|', '*']

/** Kubernetes prints the character code. */
const equalsSign = '='.charCodeAt(0)

function invalidSelector(problem: string): StatusError {
  return badRequest(`invalid field selector: ${problem}`)
}
