import type { FieldRequirement, SelectableField } from '../api/selectors/field-selector.ts'
import { exactly, type ValuePattern } from '../api/selectors/value-pattern.ts'
import type { EventFields } from './event-fields.ts'

/** Properties that every match of a selector has, for implementations with indexes. All are optional. */
export interface Requires {
  /** The name of the event itself: within a namespace, names are in the order of keys. */
  readonly names?: readonly ValuePattern[] | undefined
  readonly namespaces?: readonly ValuePattern[] | undefined
  /** One of these uids. */
  readonly regardingUids?: readonly string[] | undefined
  /** One of these objects, in any namespace. */
  readonly regarding?: readonly NamedObject[] | undefined
  /** One of the objects that `regarding` or `related` refers to. */
  readonly mentions?: readonly Mention[] | undefined
  /** One of the workloads that the regarded object belongs to, or is. */
  readonly workloads?: readonly NamedObject[] | undefined
  readonly nodes?: readonly string[] | undefined
  /** Numbers of patterns; see incidents/pattern.ts. */
  readonly notePatterns?: readonly number[] | undefined
  readonly values?: readonly ValueRequirement[] | undefined
  /** Bounds of the time when the event was last seen; `untilMs` is outside. */
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
  readonly texts?: readonly RequiredText[] | undefined
  /** The encoded event contains one text of each of these lists. */
  readonly fragments?: readonly (readonly string[])[] | undefined
  /**
   * An event matches exactly when it has what is required here, apart from names, namespaces and
   * objects, which must not be required then: `matches` need not be called.
   */
  readonly isAll?: boolean | undefined
  /** All requirements of fields, for implementations that have a column for each field. */
  readonly fields?: readonly FieldRequirement[] | undefined
  /** Nothing but `fields` is required. */
  readonly isOfFields?: boolean | undefined
}

/** Fields whose values an index knows. */
const valueFields = [
  'regarding.kind',
  'reason',
  'type',
  'reportingController',
  'controller',
] as const

export type ValueField = (typeof valueFields)[number]

export function isValueField(field: SelectableField): field is ValueField {
  return valueFields.some((known) => known === field)
}

export type ValueRequirement = Pick<FieldRequirement, 'operator' | 'patterns'> & {
  readonly field: ValueField
}

/** Requires one value, or excludes it. */
export function valueRequirement(
  field: ValueField,
  operator: FieldRequirement['operator'],
  text: string,
): ValueRequirement {
  return { field, operator, patterns: exactly(text) }
}

/** One of these texts is in the event, or none is. They are compared without case. */
export interface RequiredText {
  /** In lower case. */
  readonly texts: readonly string[]
  readonly isIn: boolean
  /** Not only the note and the reason are searched, but also names and kinds. */
  readonly isAnywhere: boolean
}

interface SearchedEvent {
  readonly key: { readonly name: string }
  readonly fields: EventFields
}

/** Whether the event contains all required texts and no excluded one, both lowered by JavaScript. */
export function hasTexts(required: readonly RequiredText[], stored: SearchedEvent): boolean {
  const note = stored.fields.note.toLowerCase()
  const reason = stored.fields.reason.toLowerCase()
  return required.every(({ texts, isIn, isAnywhere }) => {
    const isFound = (text: string) =>
      note.includes(text) || reason.includes(text) || (isAnywhere && isInNames(text, stored))
    return texts.some(isFound) === isIn
  })
}

function isInNames(text: string, { key, fields }: SearchedEvent): boolean {
  const { regarding, related } = fields
  return (
    isInName(text, regarding.name) ||
    isInName(text, regarding.kind) ||
    isInName(text, key.name) ||
    isInName(text, related.name) ||
    isInName(text, related.kind)
  )
}

function isInName(text: string, name: string): boolean {
  return name.toLowerCase().includes(text)
}

/** An object by kind, whose case is ignored, and name. */
export interface NamedObject {
  readonly kind: string
  readonly name: string
  readonly uid?: undefined
}

/** An object by lower-case kind and name, or by uid. */
export type Mention = NamedObject | { readonly uid: string }
