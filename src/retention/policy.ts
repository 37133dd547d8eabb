import { createHash } from 'node:crypto'
import { HistoryPolicy } from './history-policy.ts'
import { FirstMatch, type RuleSelector, type RuleSubject } from './rule-selector.ts'

/** Milliseconds from the last change of an event until it expires. */
export type Lifetime = number | 'never'

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

/** The rule for events that no other rule matches. */
export const DEFAULT_RULE = 'default'

export interface PolicyOptions {
  /** The first rule that matches an event applies to it. */
  readonly rules?: readonly RetentionRule[] | undefined
  /** The lifetime of events that no rule matches. */
  readonly lifetime: Lifetime
  /** The first budget that matches a namespace or a cluster applies to it. */
  readonly budgets?: readonly RetentionBudget[] | undefined
  /** How long events stay in history; a year unless given. */
  readonly history?: HistoryPolicy | undefined
}

/**
 * How long events live, how many may be stored, and how long they stay in history.
 *
 * Rules are evaluated when an event may be due, not when it is written, so a changed policy applies to
 * stored events as well.
 */
export class RetentionPolicy {
  /** The last rule matches every event. */
  readonly rules: readonly RetentionRule[]
  readonly budgets: readonly RetentionBudget[]
  readonly history: HistoryPolicy
  /** Different for different policies. Short: for logs and comparison, not for security. */
  readonly fingerprint: string
  readonly #matches: FirstMatch<RetentionRule>
  readonly #lifetimesMs: readonly number[]

  constructor({ rules = [], lifetime, budgets = [], history }: PolicyOptions) {
    this.rules = [...rules, { name: DEFAULT_RULE, selector: {}, lifetime }]
    for (const { lifetime: ms } of this.rules) {
      if (ms !== 'never' && !(ms > 0)) throw new RangeError(`invalid lifetime: ${ms}`)
    }
    this.budgets = budgets
    this.history = history ?? new HistoryPolicy()
    this.#matches = new FirstMatch(this.rules)
    this.#lifetimesMs = this.rules.map((rule) => rule.lifetime).filter((ms) => ms !== 'never')
    // A policy without history has the same fingerprint as in versions that know none.
    const ofHistory = history === undefined ? [] : [history.rules]
    const text = JSON.stringify([this.rules, this.budgets, ...ofHistory])
    this.fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 8)
  }

  /** One lifetime for every event. */
  static uniform(lifetime: Lifetime): RetentionPolicy {
    return new RetentionPolicy({ lifetime })
  }

  ruleOf(event: RuleSubject): RetentionRule {
    return this.#matches.of(event)
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
