/**
 * The syntax of `fieldSelector`: `a=b`, `a==b`, `a!=b`, joined by commas that mean "and". In a
 * value, `\`, `,` and `=` are escaped with a backslash. Empty terms are ignored.
 *
 * Some labels are options of the query rather than fields, since kubectl can send any selector but
 * no query parameters.
 */
import { ownText } from '../../lib/text/own-text.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest, type StatusError } from '../status.ts'
import { checkSelectorBytes, REQUIREMENTS_MAX } from './label-selector.ts'

/**
 * The selectable fields, by their names in events.k8s.io. `source` is supported in core/v1 only.
 * The last five are not fields of the object: the controller that reported the event, in whichever
 * field it is named; bounds of the time when it was last seen; an object that it is about; and a
 * text in its note or reason.
 */
export type SelectableField =
  | 'metadata.name'
  | 'metadata.namespace'
  | 'reason'
  | 'type'
  | 'action'
  | 'reportingController'
  | 'reportingInstance'
  | 'source'
  | `regarding.${ReferenceField}`
  | `related.${ReferenceField}`
  | 'controller'
  | 'since'
  | 'until'
  | 'mentions'
  | 'text'

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
  readonly operator: '=' | '!='
  readonly value: string
}

/** Keyed by the names of the fields in one API group. */
export type FieldNames = ReadonlyMap<string, SelectableField>

/** The fields of Kubernetes, and those that only this server has. */
const commonFields = [
  'metadata.name',
  'metadata.namespace',
  'reason',
  'type',
  'action',
  'reportingInstance',
  'controller',
  'since',
  'until',
  'mentions',
  'text',
  ...referenceFields.map((name) => `related.${name}` as const),
] as const

export const eventFieldNames: FieldNames = new Map<string, SelectableField>([
  ...commonFields.map((name) => [name, name] as const),
  ...referenceFields.map((name) => [`regarding.${name}`, `regarding.${name}`] as const),
  ['reportingController', 'reportingController'],
])

export const coreFieldNames: FieldNames = new Map<string, SelectableField>([
  ...commonFields.map((name) => [name, name] as const),
  ...referenceFields.map((name) => [`involvedObject.${name}`, `regarding.${name}`] as const),
  ['reportingComponent', 'reportingController'],
  ['source', 'source'],
])

/** Accepts the names of both APIs. */
export const anyFieldNames: FieldNames = new Map([...coreFieldNames, ...eventFieldNames])

/** Applies to objects that have none of the fields of events. */
export const nameFieldOnly: FieldNames = new Map([['metadata.name', 'metadata.name']])

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
  for (const { name, operator, value } of termsOf(text)) {
    const option = optionNames.find((one) => one === name)
    if (option !== undefined) {
      if (operator !== '=') throw badRequest(`${option} is an option: write ${option}=<value>`)
      if (options.some((one) => one.name === option)) {
        throw badRequest(`the option ${option} is in the field selector twice`)
      }
      options.push({ name: option, value: ownText(value) })
      continue
    }
    const field = names.get(name)
    if (field === undefined) throw badRequest(`field label not supported: ${truncate(name)}`)
    fields.push({ field, operator, value: ownText(value) })
  }
  return { fields, options }
}

function termsOf(text: string): readonly Term[] {
  if (text === '') return []
  checkSelectorBytes(text, 'field')
  const terms = splitTerms(text)
  if (terms.length > REQUIREMENTS_MAX) {
    throw badRequest(`a field selector has at most ${REQUIREMENTS_MAX} requirements`)
  }
  return terms
    .map((term) => splitTerm(term, text))
    .filter(({ name, value }) => name !== '' || value !== '')
}

/** Sorted, so that the same one of several errors is always reported. */
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
  return terms.sort()
}

interface Term {
  readonly name: string
  readonly operator: '=' | '!='
  readonly value: string
}

/** Commas separate the fields of `groupBy` in a query parameter, but terms in a selector. */
function hintFor(whole: string): string {
  if (!/(?:^|,)groupBy=/.test(whole)) return ''
  return '; in a field selector join the fields by +: groupBy=reason+controller'
}

function splitTerm(term: string, whole: string): Term {
  const match = /!=|==?/.exec(term)
  if (match === null) {
    throw badRequest(
      `invalid selector: '${truncate(whole)}'; can't understand '${truncate(term)}'${hintFor(whole)}`,
    )
  }
  return {
    name: term.slice(0, match.index),
    operator: match[0] === '!=' ? '!=' : '=',
    value: unescaped(term.slice(match.index + match[0].length)),
  }
}

function unescaped(value: string): string {
  if (!/[\\=]/.test(value)) return value
  return value.replace(/\\(.?)|=/gsu, (sequence, character: string | undefined) => {
    if (character === undefined)
      throw invalidSelector(`unescaped character in value: ${equalsSign}`)
    if (!['\\', ',', '='].includes(character))
      throw invalidSelector(`invalid escape sequence: ${sequence}`)
    return character
  })
}

/** Kubernetes prints the character code. */
const equalsSign = '='.charCodeAt(0)

function invalidSelector(problem: string): StatusError {
  return badRequest(`invalid field selector: ${problem}`)
}
