/** Retention policies of a run, and when each replaces the one before: follows from the seed alone. */
import {
  type Lifetime,
  type RetentionBudget,
  RetentionPolicy,
} from '../../../src/retention/policy.ts'
import type { RuleSelector } from '../../../src/retention/rule-selector.ts'
import { Random } from '../../support/random.ts'
import { type Facets, facetsOf } from '../checker/stored-text.ts'
import { namespaces } from '../workload/key-space.ts'

export interface PlannedRule {
  readonly namespace?: string
  readonly type?: string
  readonly reason?: string
  readonly controller?: string
  readonly lifetime: Lifetime
}

/** The budget of each namespace, or of the cluster. */
export interface PlannedBudget {
  readonly per: 'Namespace' | 'Cluster'
  /** Undefined: of all. */
  readonly namespace?: string
  readonly events?: number
  readonly bytes?: number
}

export interface PlannedPolicy {
  readonly rules: readonly PlannedRule[]
  readonly budgets: readonly PlannedBudget[]
  /** The lifetime of events that no rule matches. */
  readonly lifetime: Lifetime
}

export interface PolicyStep {
  readonly at: number
  readonly policy: PlannedPolicy
}

/** What a rule can select by. */
export interface Selected {
  readonly namespace: string
  readonly facet: number
}

const minute = 60_000
const facetsTable: readonly Facets[] = Array.from({ length: 1_000 }, (_, facet) => facetsOf(facet))

export function facetsIn(facet: number): Facets {
  return facetsTable[facet] ?? facetsOf(facet)
}

/** Evaluated by code of its own. */
export function lifetimeIn({ rules, lifetime }: PlannedPolicy, selected: Selected): Lifetime {
  const { type, reason, controller } = facetsIn(selected.facet)
  const found = rules.find(
    (rule) =>
      (rule.namespace ?? selected.namespace) === selected.namespace &&
      (rule.type ?? type) === type &&
      (rule.reason ?? reason) === reason &&
      (rule.controller ?? controller) === controller,
  )
  return found === undefined ? lifetime : found.lifetime
}

/** The budget of a namespace; undefined: of the cluster. */
export function budgetIn(
  { budgets }: PlannedPolicy,
  namespace: string | undefined,
): PlannedBudget | undefined {
  const per = namespace === undefined ? 'Cluster' : 'Namespace'
  return budgets.find(
    (budget) => budget.per === per && (budget.namespace ?? namespace) === namespace,
  )
}

/** Some runs have one lifetime for everything, as without a policy file. */
export function planPolicies(
  seed: number,
  { durationMs, eventTtlMs }: { readonly durationMs: number; readonly eventTtlMs: number },
): readonly PolicyStep[] {
  const random = new Random(seed ^ 0x9011c7)
  const first = { rules: [], budgets: [], lifetime: eventTtlMs }
  if (random.chance(0.15)) return [{ at: 0, policy: first }]
  const steps: PolicyStep[] = []
  const everyMs = random.pick([0.7, 2, 5]) * minute
  for (let at = 0; at < durationMs; at += random.between(0.2, 2) * everyMs) {
    steps.push({ at, policy: drawPolicy(random, eventTtlMs) })
  }
  return steps
}

/** Lifetimes below a minute expire in every calm; rules may hide others. */
function drawPolicy(random: Random, lifetime: Lifetime): PlannedPolicy {
  const rules = Array.from({ length: random.below(5) }, (): PlannedRule => {
    const { type, reason, controller } = facetsOf(random.below(100))
    return {
      ...(random.chance(0.5) ? { namespace: random.pick(namespaces) } : {}),
      ...(random.chance(0.5) ? { type } : {}),
      ...(random.chance(0.4) ? { reason } : {}),
      ...(random.chance(0.4) ? { controller } : {}),
      lifetime: random.pick([20_000, 40_000, 90_000, 2 * minute, 4 * minute, 'never']),
    }
  })
  return { rules, budgets: random.chance(0.6) ? drawBudgets(random) : [], lifetime }
}

function drawBudgets(random: Random): readonly PlannedBudget[] {
  const size = (events: number) =>
    random.chance(0.7) ? { events } : { events: 2 * events, bytes: events * 600 }
  const budgets: PlannedBudget[] = [
    {
      per: 'Namespace',
      namespace: random.pick(namespaces),
      ...size(random.pick([5, 20, 60])),
    },
    { per: 'Namespace', ...size(random.pick([30, 80])) },
    { per: 'Cluster', ...size(random.pick([40, 120, 300])) },
  ]
  return budgets.filter(() => random.chance(0.7))
}

/** The policy as the server reads it from its file. */
export function productionPolicy({ rules, budgets, lifetime }: PlannedPolicy): RetentionPolicy {
  return new RetentionPolicy({
    lifetime,
    rules: rules.map(({ lifetime: ms, ...match }, index) => ({
      name: `rule-${index + 1}`,
      selector: selectorOf(match),
      lifetime: ms,
    })),
    budgets: budgets.map(
      ({ per, namespace, events, bytes }, index): RetentionBudget => ({
        name: `budget-${index + 1}`,
        per,
        cluster: undefined,
        namespace: namespace === undefined ? undefined : [namespace],
        events,
        bytes,
      }),
    ),
  })
}

function selectorOf(match: Omit<PlannedRule, 'lifetime'>): RuleSelector {
  return Object.fromEntries(Object.entries(match).map(([field, value]) => [field, [value]]))
}
