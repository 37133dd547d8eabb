/** The events that a rule of the policy is for, whatever the rule says of them. */
import { StorageError } from '../storage/errors.ts'
import type { EventValues, StoredEvent } from '../storage/storage.ts'

/** Selects events that match one of the values of every field given here. */
export interface RuleSelector {
  readonly cluster?: readonly string[] | undefined
  readonly namespace?: readonly string[] | undefined
  readonly type?: readonly string[] | undefined
  readonly reason?: readonly string[] | undefined
  /** Matches `regarding.kind`. */
  readonly kind?: readonly string[] | undefined
  /** Matches `reportingController`. */
  readonly controller?: readonly string[] | undefined
}

/** The parts of an event that rules match. */
export type RuleSubject = Pick<StoredEvent, 'key' | 'fields' | 'values'>

interface Rule {
  readonly selector: RuleSelector
}

/** The first rule that matches an event applies to it. */
export class FirstMatch<R extends Rule> {
  readonly #matchers: readonly Matcher<R>[]

  /** The last rule matches every event. */
  constructor(rules: readonly R[]) {
    this.#matchers = rules.map((rule) => new Matcher(rule))
  }

  of(event: RuleSubject): R {
    const found = this.#matchers.find((matcher) => matcher.matches(event))
    if (found === undefined) throw new Error('the last rule must match every event')
    return found.rule
  }
}

/** A rule with its values in sets: a file may list a hundred namespaces. */
class Matcher<R extends Rule> {
  readonly rule: R
  readonly #ofKey: readonly Condition<StoredEvent['key']>[]
  readonly #ofFields: readonly Condition<EventValues>[]

  constructor(rule: R) {
    const { cluster, namespace, type, reason, kind, controller } = rule.selector
    this.rule = rule
    this.#ofKey = [
      ...oneOf(cluster, (key: StoredEvent['key']) => key.cluster),
      ...oneOf(namespace, (key: StoredEvent['key']) => key.namespace),
    ]
    this.#ofFields = [
      ...oneOf(type, (fields: EventValues) => fields.type),
      ...oneOf(reason, (fields: EventValues) => fields.reason),
      ...oneOf(kind, (fields: EventValues) => fields.kind),
      ...oneOf(controller, (fields: EventValues) => fields.reportingController),
    ]
  }

  matches(event: RuleSubject): boolean {
    if (!this.#ofKey.every((isMet) => isMet(event.key))) return false
    // Reading the fields may parse the whole event, so rules that need none come first.
    if (this.#ofFields.length === 0) return true
    const fields = valuesOf(event)
    return fields !== undefined && this.#ofFields.every((isMet) => isMet(fields))
  }
}

type Condition<T> = (subject: T) => boolean

function oneOf<T>(
  values: readonly string[] | undefined,
  read: (subject: T) => string,
): readonly Condition<T>[] {
  if (values === undefined) return []
  const known = new Set(values)
  return [(subject) => known.has(read(subject))]
}

/** Undefined for an unreadable event: only rules that require no values match it. */
function valuesOf(event: RuleSubject): EventValues | undefined {
  try {
    return event.values ?? valuesIn(event.fields)
  } catch (error) {
    if (error instanceof StorageError && error.kind === 'corrupt') return undefined
    throw error
  }
}

function valuesIn(fields: StoredEvent['fields']): EventValues {
  const { type, reason, regarding, reportingController } = fields
  return { type, reason, kind: regarding.kind, reportingController }
}
