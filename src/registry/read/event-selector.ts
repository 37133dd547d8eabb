import { hash } from 'node:crypto'
import {
  type FieldRequirement,
  requiredValue,
  type SelectableField,
} from '../../api/selectors/field-selector.ts'
import type { LabelSelector } from '../../api/selectors/label-selector.ts'
import type { ShardSelector } from '../../api/selectors/shard-selector.ts'
import { isAnyMatch } from '../../api/selectors/value-pattern.ts'
import type { EventSelector } from '../../storage/storage.ts'
import { uidIn } from '../../storage/stored-form.ts'
import { requirementsOf } from './field-requires.ts'
import { type EventTest, testsOf } from './field-tests.ts'
import { mergedFields } from './merged-fields.ts'
import { checkContradictions } from './selector-warnings.ts'

/**
 * All selectors as one filter for the storage. Undefined when every event matches. Durations in it
 * are before `nowMs`. Throws a 400 for values that are malformed.
 */
export function eventSelector(
  labels: LabelSelector,
  fields: readonly FieldRequirement[],
  nowMs: number,
  shards?: ShardSelector,
): EventSelector | undefined {
  if (labels.isEverything && fields.length === 0 && shards === undefined) return undefined
  checkContradictions(fields)
  const merged = mergedFields(fields)
  const tests = [...testsOf(merged, nowMs), ...(shards === undefined ? [] : [shardTest(shards)])]
  return {
    matches: (stored) => {
      for (const test of tests) if (!test(stored)) return false
      return labels.isEverything || labels.matches(stored.fields.labels)
    },
    requires: requirementsOf(merged, nowMs, labels.isEverything && shards === undefined),
  }
}

function shardTest({ field, matches }: ShardSelector): EventTest {
  if (field === 'object.metadata.uid') {
    // A list that parses each event takes four times as long.
    return (stored) => matches(uidIn(stored.body) ?? Buffer.from(stored.fields.uid))
  }
  return ({ key }) => matches(Buffer.from(key.namespace))
}

/**
 * Interns the selectors of watches: equal selectors share one object while a watch uses it. Saves
 * memory, since replicas of one client program send equal selectors.
 */
export class SharedSelectors {
  /** Keyed by digest, since the text is as long as the selector itself. */
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

/** Whether a part of the key is required to have an impossible value, or two different ones. */
function isImpossiblePart(fields: readonly FieldRequirement[], part: SelectableField): boolean {
  const required = requiredValue(fields, part)
  if (required === undefined) return false
  if (required === '' || required.includes('/')) return true
  return fields.some(
    ({ field, operator, patterns }) =>
      field === part && isAnyMatch(patterns, required) !== (operator === '='),
  )
}
