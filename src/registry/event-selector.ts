import { hash } from 'node:crypto'
import type { FieldRequirement, SelectableField } from '../api/field-selector.ts'
import type { LabelSelector } from '../api/label-selector.ts'
import type { EventSelector, StoredEvent } from '../storage/storage.ts'

/** Both selectors as storage takes them. Undefined when every event is meant. */
export function eventSelector(
  labels: LabelSelector,
  fields: readonly FieldRequirement[],
): EventSelector | undefined {
  if (labels.isEverything && fields.length === 0) return undefined
  return {
    matches: (stored) => {
      for (const one of fields) if (!meets(stored, one)) return false
      return labels.isEverything || labels.matches(stored.fields.labels)
    },
    requires: requiredValues(fields),
  }
}

/**
 * Selectors of watches that are equal are one and the same, for as long as somebody uses it: clients
 * of one kind ask alike.
 */
export class SharedSelectors {
  /** By digest: a text is as long as the selector itself. */
  readonly #known = new Map<string, WeakRef<EventSelector>>()
  readonly #unused = new FinalizationRegistry<string>((digest) => {
    if (this.#known.get(digest)?.deref() === undefined) this.#known.delete(digest)
  })

  /** How many different ones there are. */
  get size(): number {
    return this.#known.size
  }

  /** `texts` is what `selector` was made of. */
  share(texts: readonly string[], selector: EventSelector | undefined): EventSelector | undefined {
    if (selector === undefined) return undefined
    const digest = hash('sha256', JSON.stringify(texts), 'base64')
    const known = this.#known.get(digest)?.deref()
    if (known !== undefined) return known
    this.#known.set(digest, new WeakRef(selector))
    this.#unused.register(selector, digest)
    return selector
  }
}

/** Where matches are, as far as field requirements name the place. */
export interface NamedBy {
  /** The name of every match. */
  readonly name: string | undefined
  /** The namespace of every match. */
  readonly namespace: string | undefined
  /** There can be no match anywhere. */
  readonly isImpossible: boolean
}

export function namedBy(fields: readonly FieldRequirement[]): NamedBy {
  return {
    name: requiredValue(fields, 'metadata.name'),
    namespace: requiredValue(fields, 'metadata.namespace'),
    isImpossible:
      isImpossiblePart(fields, 'metadata.name') || isImpossiblePart(fields, 'metadata.namespace'),
  }
}

/** Whether a part of an event's key is required to be what none can be, or two things at once. */
function isImpossiblePart(fields: readonly FieldRequirement[], part: SelectableField): boolean {
  const required = requiredValue(fields, part)
  if (required === undefined) return false
  if (required === '' || required.includes('/')) return true
  return fields.some(
    ({ field, operator, value }) => field === part && (value === required) !== (operator === '='),
  )
}

function requiredValues(
  fields: readonly FieldRequirement[],
): NonNullable<EventSelector['requires']> {
  const kind = requiredValue(fields, 'regarding.kind')
  const namespace = requiredValue(fields, 'regarding.namespace')
  const name = requiredValue(fields, 'regarding.name')
  const isWhole = kind !== undefined && namespace !== undefined && name !== undefined
  return {
    name: requiredValue(fields, 'metadata.name'),
    regardingUid: requiredValue(fields, 'regarding.uid'),
    regarding: isWhole ? { kind, namespace, name } : undefined,
    reason: requiredValue(fields, 'reason'),
    type: requiredValue(fields, 'type'),
    reportingController: requiredValue(fields, 'reportingController'),
  }
}

/** What the field must be, if it must be something. */
function requiredValue(
  fields: readonly FieldRequirement[],
  field: SelectableField,
): string | undefined {
  return fields.find((one) => one.field === field && one.operator === '=')?.value
}

function meets(stored: StoredEvent, { field, operator, value }: FieldRequirement): boolean {
  return (readers[field](stored) === value) === (operator === '=')
}

const readers: Readonly<Record<SelectableField, (stored: StoredEvent) => string>> = {
  'metadata.name': (stored) => stored.key.name,
  'metadata.namespace': (stored) => stored.key.namespace,
  reason: (stored) => stored.fields.reason,
  type: (stored) => stored.fields.type,
  reportingController: (stored) => stored.fields.reportingController,
  source: ({ fields }) => fields.sourceComponent || fields.reportingController,
  'regarding.kind': (stored) => stored.fields.regarding.kind,
  'regarding.namespace': (stored) => stored.fields.regarding.namespace,
  'regarding.name': (stored) => stored.fields.regarding.name,
  'regarding.uid': (stored) => stored.fields.regarding.uid,
  'regarding.apiVersion': (stored) => stored.fields.regarding.apiVersion,
  'regarding.resourceVersion': (stored) => stored.fields.regarding.resourceVersion,
  'regarding.fieldPath': (stored) => stored.fields.regarding.fieldPath,
}
