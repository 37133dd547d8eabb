import { createHash } from 'node:crypto'
import { StorageError } from '../storage/errors.ts'
import type { EventValues, StoredEvent } from '../storage/storage.ts'

/** How long an event is kept after its last change, in milliseconds. */
export type Lifetime = number | 'never'

/** Selects events that have, in each field given here, one of its values. */
export interface RuleSelector {
  readonly cluster?: readonly string[] | undefined
  readonly namespace?: readonly string[] | undefined
  readonly type?: readonly string[] | undefined
  readonly reason?: readonly string[] | undefined
  /** The kind of the object that the event is about. */
  readonly kind?: readonly string[] | undefined
  /** The `reportingController`. */
  readonly controller?: readonly string[] | undefined
}

export interface RetentionRule {
  /** For metrics; unique in a policy. */
  readonly name: string
  readonly selector: RuleSelector
  readonly lifetime: Lifetime
}

/** The most that each namespace, or each cluster, may keep: at least one of events and bytes. */
export interface RetentionBudget {
  /** For metrics; unique in a policy. */
  readonly name: string
  readonly per: 'Namespace' | 'Cluster'
  /** Undefined: all. */
  readonly cluster: readonly string[] | undefined
  readonly namespace: readonly string[] | undefined
  readonly events: number | undefined
  readonly bytes: number | undefined
}

/** The parts of an event that decide how long it is kept. */
export type Keepable = Pick<StoredEvent, 'key' | 'fields' | 'values'>

/** The name of the rule that applies to events which no other rule matches. */
export const DEFAULT_RULE = 'default'

export interface PolicyOptions {
  /** In order: the first that matches an event applies to it. */
  readonly rules?: readonly RetentionRule[] | undefined
  /** For events that no rule matches. */
  readonly lifetime: Lifetime
  /** In order: the first that matches a namespace, or a cluster, applies to it. */
  readonly budgets?: readonly RetentionBudget[] | undefined
}

/**
 * How long events are kept, and how many.
 *
 * It is evaluated when an event may be due, not when it is written: a changed policy applies to
 * stored events as well.
 */
export class RetentionPolicy {
  /** The last one matches every event. */
  readonly rules: readonly RetentionRule[]
  readonly budgets: readonly RetentionBudget[]
  /** Differs between policies that differ. Short: for logs and comparison, not for security. */
  readonly fingerprint: string
  readonly #matchers: readonly Matcher[]
  readonly #lifetimesMs: readonly number[]

  constructor({ rules = [], lifetime, budgets = [] }: PolicyOptions) {
    this.rules = [...rules, { name: DEFAULT_RULE, selector: {}, lifetime }]
    for (const { lifetime: ms } of this.rules) {
      if (ms !== 'never' && !(ms > 0)) throw new RangeError(`invalid lifetime: ${ms}`)
    }
    this.budgets = budgets
    this.#matchers = this.rules.map((rule) => new Matcher(rule))
    this.#lifetimesMs = this.rules.map((rule) => rule.lifetime).filter((ms) => ms !== 'never')
    const text = JSON.stringify([this.rules, this.budgets])
    this.fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 8)
  }

  /** One lifetime for every event. */
  static uniform(lifetime: Lifetime): RetentionPolicy {
    return new RetentionPolicy({ lifetime })
  }

  ruleOf(event: Keepable): RetentionRule {
    const found = this.#matchers.find((matcher) => matcher.matches(event))
    if (found === undefined) throw new Error('the last rule must match every event')
    return found.rule
  }

  lifetimeOf(event: Keepable): Lifetime {
    return this.ruleOf(event).lifetime
  }

  /** The lifetime of events that no rule matches. */
  get defaultLifetime(): Lifetime {
    return this.rules.at(-1)?.lifetime ?? 'never'
  }

  /** The budget of a namespace, or of a cluster when `namespace` is undefined. */
  budgetOf(cluster: string, namespace: string | undefined): RetentionBudget | undefined {
    const per = namespace === undefined ? 'Cluster' : 'Namespace'
    return this.budgets.find(
      (budget) =>
        budget.per === per &&
        budget.cluster?.includes(cluster) !== false &&
        (namespace === undefined || budget.namespace?.includes(namespace) !== false),
    )
  }

  /** Whether all events have the same lifetime, so that a change of an event cannot change it. */
  get isUniform(): boolean {
    return this.rules.length === 1
  }

  /** The shortest lifetime; undefined when no event ever expires. */
  get shortestMs(): number | undefined {
    return this.#lifetimesMs.length === 0 ? undefined : Math.min(...this.#lifetimesMs)
  }

  /** The longest lifetime of events that expire; 0 when none does. */
  get longestMs(): number {
    return Math.max(0, ...this.#lifetimesMs)
  }

  /** Whether some events never expire, unless the policy is changed. */
  get keepsForever(): boolean {
    return this.#lifetimesMs.length < this.rules.length
  }
}

/** A rule with its values as sets: a file may list a hundred namespaces. */
class Matcher {
  readonly rule: RetentionRule
  readonly #ofKey: readonly Condition<StoredEvent['key']>[]
  readonly #ofFields: readonly Condition<EventValues>[]

  constructor(rule: RetentionRule) {
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

  matches(event: Keepable): boolean {
    if (!this.#ofKey.every((isMet) => isMet(event.key))) return false
    // Reading the fields may parse the whole event: skip it when the rule does not need them.
    if (this.#ofFields.length === 0) return true
    const fields = valuesOf(event)
    return fields !== undefined && this.#ofFields.every((isMet) => isMet(fields))
  }
}

type Condition<T> = (subject: T) => boolean

/** No condition when there are no values. */
function oneOf<T>(
  values: readonly string[] | undefined,
  read: (subject: T) => string,
): readonly Condition<T>[] {
  if (values === undefined) return []
  const known = new Set(values)
  return [(subject) => known.has(read(subject))]
}

/** An unreadable event has no values: only rules that require none match it. */
function valuesOf(event: Keepable): EventValues | undefined {
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
