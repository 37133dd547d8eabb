import { hash } from 'node:crypto'
import type { FieldRequirement, SelectableField } from '../../api/selectors/field-selector.ts'
import type { LabelSelector } from '../../api/selectors/label-selector.ts'
import type { EventSelector, StoredEvent } from '../../storage/storage.ts'

/** Both selectors as one filter for the storage. Undefined when every event matches. */
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
 * Interns the selectors of watches: equal selectors share one object while a watch uses it. Saves
 * memory, since replicas of one client program send equal selectors.
 */
export class SharedSelectors {
  /** By digest, since the text is as long as the selector itself. */
  readonly #known = new Map<string, WeakRef<EventSelector>>()
  readonly #unused = new FinalizationRegistry<string>((digest) => {
    if (this.#known.get(digest)?.deref() === undefined) this.#known.delete(digest)
  })

  /** The number of different selectors. */
  get size(): number {
    return this.#known.size
  }

  /** `texts`: the texts that `selector` was parsed from. */
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

/** The name and namespace that field requirements fix for all matches. */
export interface NamedBy {
  /** The name of every match. */
  readonly name: string | undefined
  /** The namespace of every match. */
  readonly namespace: string | undefined
  /** No event can match. */
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

/** Whether a part of the key has an impossible required value, or contradictory requirements. */
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

/** The value that the field must have, if one is required. */
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
