import { createHash } from 'node:crypto'
import { StorageError } from '../storage/errors.ts'
import type { EventValues, StoredEvent } from '../storage/storage.ts'

/** Milliseconds from the last change of an event until it expires. */
export type Lifetime = number | 'never'

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

export interface RetentionRule {
  /** A metric label; unique within a policy. */
  readonly name: string
  readonly selector: RuleSelector
  readonly lifetime: Lifetime
}

/** The maximum for each namespace or each cluster, in events, bytes or both. */
export interface RetentionBudget {
  /** A metric label; unique within a policy. */
  readonly name: string
  readonly per: 'Namespace' | 'Cluster'
  /** Undefined matches all. */
  readonly cluster: readonly string[] | undefined
  readonly namespace: readonly string[] | undefined
  readonly events: number | undefined
  readonly bytes: number | undefined
}

/** The parts of an event that rules match. */
export type RuleSubject = Pick<StoredEvent, 'key' | 'fields' | 'values'>

/** The rule for events that no other rule matches. */
export const DEFAULT_RULE = 'default'

export interface PolicyOptions {
  /** The first rule that matches an event applies to it. */
  readonly rules?: readonly RetentionRule[] | undefined
  /** The lifetime of events that no rule matches. */
  readonly lifetime: Lifetime
  /** The first budget that matches a namespace or a cluster applies to it. */
  readonly budgets?: readonly RetentionBudget[] | undefined
}

/**
 * How long events live, and how many may be stored.
 *
 * Rules are evaluated when an event may be due, not when it is written, so a changed policy applies to
 * stored events as well.
 */
export class RetentionPolicy {
  /** The last rule matches every event. */
  readonly rules: readonly RetentionRule[]
  readonly budgets: readonly RetentionBudget[]
  /** Different for different policies. Short: for logs and comparison, not for security. */
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

  ruleOf(event: RuleSubject): RetentionRule {
    const found = this.#matchers.find((matcher) => matcher.matches(event))
    if (found === undefined) throw new Error('the last rule must match every event')
    return found.rule
  }

  lifetimeOf(event: RuleSubject): Lifetime {
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

  /** Whether all events have the same lifetime, so that changing an event cannot change it. */
  get isUniform(): boolean {
    return this.rules.length === 1
  }

  /** The shortest lifetime; undefined when no event ever expires. */
  get shortestMs(): number | undefined {
    return this.#lifetimesMs.length === 0 ? undefined : Math.min(...this.#lifetimesMs)
  }

  /** The longest finite lifetime; 0 when no event expires. */
  get longestMs(): number {
    return Math.max(0, ...this.#lifetimesMs)
  }

  /** Whether some events never expire, unless the policy is changed. */
  get keepsForever(): boolean {
    return this.#lifetimesMs.length < this.rules.length
  }
}

/** A rule with its values in sets: a file may list a hundred namespaces. */
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
