import type { Requires, ValueField, ValueRequirement } from '../storage/requires.ts'
import { FirstMatch, type RuleSelector, type RuleSubject } from './rule-selector.ts'

/** Milliseconds from when an event was last seen until history may drop it. */
export type HistoryKeep = number | 'forever' | 'never-archived'

export interface HistoryRule {
  /** As in the file, or `default` for the last rule. */
  readonly name: string
  readonly selector: RuleSelector
  readonly keep: HistoryKeep
}

/** Rows of history that are kept equally long. */
export interface HistoryClass {
  /** Exact: all rows with these properties are in the class, unless an earlier class has them. */
  readonly requires: Requires
  /** 0 for what is not to be archived, `Infinity` for what is never dropped. */
  readonly keepMs: number
}

const DEFAULT_RULE = 'default'
const DEFAULT_KEEP_MS: number = 365 * 86_400_000

const VALUE_FIELDS: Readonly<
  Record<Exclude<keyof RuleSelector, 'cluster' | 'namespace'>, ValueField>
> = {
  type: 'type',
  reason: 'reason',
  kind: 'regarding.kind',
  controller: 'reportingController',
}

/** Which events are archived, and for how long. Wall clocks decide: history is split into their days. */
export class HistoryPolicy {
  /** The last rule matches every event. */
  readonly rules: readonly HistoryRule[]
  readonly #matches: FirstMatch<HistoryRule>

  /** The first rule that matches an event applies to it, and `keep` to events that none matches. */
  constructor(rules: readonly HistoryRule[] = [], keep: HistoryKeep = DEFAULT_KEEP_MS) {
    this.rules = [...rules, { name: DEFAULT_RULE, selector: {}, keep }]
    this.#matches = new FirstMatch(this.rules)
  }

  keepMsOf(event: RuleSubject): HistoryKeep {
    return this.#matches.of(event).keep
  }

  /** The classes of a cluster's rows; the first that a row is in applies to it. Each row is in one. */
  classesOf(cluster: string): readonly HistoryClass[] {
    return this.rules
      .filter(({ selector }) => selector.cluster?.includes(cluster) !== false)
      .map(({ selector, keep }) => ({ requires: requiresOf(selector), keepMs: keepMs(keep) }))
  }
}

function requiresOf(selector: RuleSelector): Requires {
  const values = Object.entries(VALUE_FIELDS).flatMap(([name, field]): ValueRequirement[] => {
    const texts = selector[name as keyof typeof VALUE_FIELDS]
    return texts === undefined ? [] : [{ field, operator: '=', patterns: texts.map(exact) }]
  })
  return {
    ...(selector.namespace && { namespaces: selector.namespace.map(exact) }),
    ...(values.length > 0 && { values }),
  }
}

function exact(text: string): { readonly text: string; readonly isPrefix: false } {
  return { text, isPrefix: false }
}

function keepMs(keep: HistoryKeep): number {
  if (keep === 'forever') return Number.POSITIVE_INFINITY
  return keep === 'never-archived' ? 0 : keep
}
