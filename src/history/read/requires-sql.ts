/**
 * Selectors as SQL. The SQL is a necessary condition with the meaning that a selector has in memory;
 * `isExact` says whether it is sufficient as well. It is divided into conditions that DuckDB compares
 * with the minimum and maximum, and the Bloom filter, of each row group: those of a single column. An
 * OR over two columns prunes nothing, so each of its sides is a condition of its own.
 */
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import type { ValuePattern } from '../../api/selectors/value-pattern.ts'
import { parsePatternId } from '../../incidents/pattern.ts'
import type {
  Mention,
  NamedObject,
  RequiredText,
  Requires,
  ValueField,
} from '../../storage/requires.ts'
import { endOfPrefix } from './byte-order.ts'
import type { SqlValues } from './sql-values.ts'

export interface RowFilter {
  /** A row matches when one of these conditions holds. No row meets two of them. */
  readonly branches: readonly string[]
  /** Rows that match need not be verified. */
  readonly isExact: boolean
}

export interface FilteredRows {
  readonly requires: Requires | undefined
  /** The cluster is that of the file. */
  readonly namespace: string | undefined
}

/** `also`: further conditions that each row must meet. */
export function rowFilter(
  { requires = { isAll: true }, namespace }: FilteredRows,
  values: SqlValues,
  also: readonly string[] = [],
): RowFilter {
  const terms = new Terms(values)
  for (const sql of also) terms.require(sql)
  if (namespace !== undefined) terms.require(`namespace = ${values.text(namespace)}`)
  const { sinceMs, untilMs, texts = [], mentions, workloads, fields, isAll, isOfFields } = requires
  if (sinceMs !== undefined) terms.require(`last_seen >= ${values.time(sinceMs)}`)
  if (untilMs !== undefined) terms.require(`last_seen < ${values.time(untilMs)}`)
  if (fields === undefined) addIndexed(terms, requires)
  else for (const field of fields) addField(terms, field, requires)
  if (mentions !== undefined) terms.requireAnyOf(mentionAlternatives(mentions, terms))
  if (workloads !== undefined) {
    const sides = ['regarding', 'workload'] as const
    terms.requireAnyOf(sides.map((side) => objectCondition(side, workloads, terms)))
  }
  for (const text of texts) addTexts(terms, text)
  return {
    branches: terms.branches(),
    isExact: (isAll === true || (isOfFields === true && fields !== undefined)) && terms.isExact,
  }
}

/** A conjunction, some terms of which are alternatives. */
class Terms {
  readonly values: SqlValues
  /** Every requirement was translated as it is. */
  isExact = true
  readonly #all: string[] = []
  readonly #anyOf: (readonly string[])[] = []

  constructor(values: SqlValues) {
    this.values = values
  }

  require(sql: string): void {
    this.#all.push(sql)
  }

  requireAnyOf(alternatives: readonly string[]): void {
    this.#anyOf.push(alternatives)
  }

  branches(): readonly string[] {
    const common = this.#all.length === 0 ? ['true'] : this.#all
    const found = this.#anyOf.reduce<readonly (readonly string[])[]>(
      (branches, alternatives) =>
        branches.flatMap((branch) => disjoint(alternatives).map((one) => [...branch, one])),
      [common],
    )
    return found.map((branch) => branch.join(' AND '))
  }
}

function disjoint(alternatives: readonly string[]): readonly string[] {
  return alternatives.map((one, index) =>
    [one, ...alternatives.slice(0, index).map((earlier) => `(${earlier}) IS NOT TRUE`)].join(
      ' AND ',
    ),
  )
}

const VALUE_COLUMNS: Readonly<Record<ValueField, string>> = {
  'regarding.kind': 'regarding_kind',
  reason: 'reason',
  type: 'type',
  reportingController: 'reporting_controller',
  controller: 'controller',
}

/** What an index of memory could look up. */
function addIndexed(terms: Terms, requires: Requires): void {
  const { names, namespaces, regardingUids, regarding, nodes, notePatterns, values } = requires
  if (names !== undefined) addPatterns(terms, 'name', '=', names)
  if (namespaces !== undefined) addPatterns(terms, 'namespace', '=', namespaces)
  if (regardingUids !== undefined)
    addPatterns(terms, 'regarding_uid', '=', asPatterns(regardingUids))
  if (regarding !== undefined) terms.require(objectCondition('regarding', regarding, terms))
  if (nodes !== undefined) addPatterns(terms, 'node', '=', asPatterns(nodes))
  if (notePatterns !== undefined) terms.require(numberCondition('=', notePatterns))
  for (const { field, operator, patterns } of values ?? []) {
    addPatterns(terms, VALUE_COLUMNS[field], operator, patterns)
  }
}

function asPatterns(texts: readonly string[]): readonly ValuePattern[] {
  return texts.map((text) => ({ text, isPrefix: false }))
}

/** `source` is the component of the deprecated source, or else the controller. */
const SOURCE = "if(source_component = '', reporting_controller, source_component)"

const FIELD_COLUMNS: Partial<Readonly<Record<SelectableField, string>>> = {
  ...VALUE_COLUMNS,
  'metadata.name': 'name',
  'metadata.namespace': 'namespace',
  action: 'action',
  reportingInstance: 'reporting_instance',
  source: SOURCE,
  node: 'node',
  ...referenceColumns('regarding'),
  ...referenceColumns('related'),
}

function referenceColumns(side: 'regarding' | 'related'): Partial<Record<SelectableField, string>> {
  return {
    [`${side}.kind`]: `${side}_kind`,
    [`${side}.namespace`]: `${side}_namespace`,
    [`${side}.name`]: `${side}_name`,
    [`${side}.uid`]: `${side}_uid`,
    [`${side}.apiVersion`]: `${side}_api_version`,
    [`${side}.resourceVersion`]: `${side}_resource_version`,
    [`${side}.fieldPath`]: `${side}_field_path`,
  }
}

function addField(terms: Terms, requirement: FieldRequirement, requires: Requires): void {
  const { field, operator, patterns } = requirement
  switch (field) {
    // Their parsed form is in `requires`.
    case 'since':
    case 'until':
    case 'text':
    case 'search':
      return
    case 'mentions':
    case 'workload':
      if (!isOnlyOne(requirement, requires)) terms.isExact = false
      return
    case 'pattern': {
      const numbers = patterns.map(({ text }) => parsePatternId(text) ?? 0)
      terms.require(numberCondition(operator, numbers))
      return
    }
    default: {
      const column = FIELD_COLUMNS[field]
      if (column === undefined) terms.isExact = false
      else addPatterns(terms, column, operator, patterns)
    }
  }
}

/** `requires` has the objects of one requirement of each field, and none that begin with a text. */
function isOnlyOne({ field, operator }: FieldRequirement, requires: Requires): boolean {
  const objects = field === 'mentions' ? requires.mentions : requires.workloads
  const same = requires.fields?.filter((one) => one.field === field) ?? []
  return operator === '=' && objects !== undefined && same.length === 1
}

function addPatterns(
  terms: Terms,
  column: string,
  operator: FieldRequirement['operator'],
  patterns: readonly ValuePattern[],
): void {
  // A text with a lone surrogate has this character in a file.
  const isAmbiguous = patterns.some(({ text }) => text.includes('\ufffd'))
  if (isAmbiguous) terms.isExact = false
  if (operator === '=') terms.require(patternsCondition(column, patterns, terms.values))
  else if (!isAmbiguous) {
    terms.require(`NOT (${patternsCondition(column, patterns, terms.values)})`)
  }
}

function patternsCondition(
  column: string,
  patterns: readonly ValuePattern[],
  values: SqlValues,
): string {
  const exact = patterns.filter(({ isPrefix }) => !isPrefix).map(({ text }) => text)
  const prefixes = patterns.filter(({ isPrefix }) => isPrefix)
  const alternatives = [
    ...(exact.length === 0 ? [] : [oneOf(column, exact, values)]),
    ...prefixes.map(({ text }) => prefixCondition(column, text, values)),
  ]
  return alternatives.length === 0 ? 'false' : `(${alternatives.join(' OR ')})`
}

function oneOf(column: string, texts: readonly string[], values: SqlValues): string {
  const listed = [...new Set(texts)].map((text) => values.text(text))
  return listed.length === 1 ? `${column} = ${listed[0]}` : `${column} IN (${listed.join()})`
}

/** The range is what row groups are compared with. */
function prefixCondition(column: string, prefix: string, values: SqlValues): string {
  const placeholder = values.text(prefix)
  const end = endOfPrefix(prefix)
  const before = end === undefined ? '' : ` AND ${column} < ${values.text(end)}`
  return `(${column} >= ${placeholder}${before} AND starts_with(${column}, ${placeholder}))`
}

/** Numbers are no text of a client. */
function numberCondition(
  operator: FieldRequirement['operator'],
  numbers: readonly number[],
): string {
  if (numbers.length === 0) return operator === '=' ? 'false' : 'true'
  const listed = numbers.map((number) => String(Math.trunc(number))).join()
  return `pattern ${operator === '=' ? 'IN' : 'NOT IN'} (${listed})`
}

function mentionAlternatives(mentions: readonly Mention[], terms: Terms): readonly string[] {
  const uids = mentions.flatMap(({ uid }) => (uid === undefined ? [] : [uid]))
  const objects = mentions.filter((mention): mention is NamedObject => mention.uid === undefined)
  const sides = ['regarding', 'related'] as const
  return [
    ...(objects.length === 0 ? [] : sides.map((side) => objectCondition(side, objects, terms))),
    ...(uids.length === 0 ? [] : sides.map((side) => oneOf(`${side}_uid`, uids, terms.values))),
  ]
}

function objectCondition(
  side: 'regarding' | 'related' | 'workload',
  objects: readonly NamedObject[],
  terms: Terms,
): string {
  if (objects.length === 0) return 'false'
  const name = `${side}_name`
  const names = objects.map((object) => object.name)
  const pairs = objects.map((object) => {
    const isNamed = `${name} = ${terms.values.text(object.name)}`
    return [isNamed, ...kindConditions(`${side}_kind`, object.kind.toLowerCase(), terms)].join(
      ' AND ',
    )
  })
  if (pairs.length === 1) return pairs.join()
  return `${oneOf(name, names, terms.values)} AND (${pairs.map((pair) => `(${pair})`).join(' OR ')})`
}

/** Kinds are compared without case. */
function kindConditions(column: string, kind: string, terms: Terms): readonly string[] {
  if (!isAscii(kind)) {
    terms.isExact = false
    return []
  }
  const isSame = `lower(${column}) = ${terms.values.text(kind)}`
  return kind.includes('i') ? [isSame, `NOT contains(${column}, '${DOTTED}')`] : [isSame]
}

/** DuckDB lowers this letter to `i`, JavaScript to `i` and a combining dot. They agree on the others. */
const DOTTED = '\u0130'

function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text)
}

const TEXT_COLUMNS = ['note', 'reason']
const NAME_COLUMNS = ['regarding_name', 'regarding_kind', 'name', 'related_name', 'related_kind']

/**
 * Texts are lowered by JavaScript and columns by DuckDB, which may know other letters. If the text is
 * ASCII, that makes no difference. Otherwise every row with a character beyond ASCII may match.
 */
function addTexts(terms: Terms, { texts, isIn, isAnywhere }: RequiredText): void {
  const columns = isAnywhere ? [...TEXT_COLUMNS, ...NAME_COLUMNS] : TEXT_COLUMNS
  const plain = texts.filter(isAscii)
  const found = plain.flatMap((text) => {
    const placeholder = terms.values.text(text)
    return columns.map((column) => containsCondition(column, text, placeholder))
  })
  const others = plain.length < texts.length ? columns.map(isBeyondAscii) : []
  if (others.length > 0) terms.isExact = false
  const isFound = (conditions: readonly string[]) => `(${conditions.join(' OR ')})`
  if (isIn) terms.require(texts.length === 0 ? 'false' : isFound([...found, ...others]))
  else if (found.length > 0) terms.require(`NOT ${isFound(found)}`)
}

function isBeyondAscii(column: string): string {
  return `strlen(${column}) <> length(${column})`
}

function containsCondition(column: string, text: string, placeholder: string): string {
  const found = `contains(lower(${column}), ${placeholder})`
  if (!text.includes('i')) return found
  const asInJavaScript = `contains(lower(replace(${column}, '${DOTTED}', 'i\u0307')), ${placeholder})`
  return `(${found} AND (NOT contains(${column}, '${DOTTED}') OR ${asInJavaScript}))`
}
