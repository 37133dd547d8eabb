/** Policies as this test knows them: written to the file, and evaluated by code of its own. */
import type { Random } from '../../support/random.ts'

/** What writers write: `alarms` has Warnings only, and `fat` long notes. */
export const NAMESPACES = ['short', 'full', 'fat', 'alarms', 'other'] as const
export const REASONS = ['Usual', 'Rare', 'Odd'] as const

/** The parts of an event that rules select by, and its size and age. */
export interface Facts {
  readonly namespace: string
  readonly type: string
  readonly reason: string
  readonly kind: string
  readonly controller: string
}

export interface PlannedRule {
  readonly name: string
  readonly match: Partial<Facts>
  readonly seconds: number | 'never'
}

export interface PlannedBudget {
  readonly name: string
  /** Undefined: of the whole cluster. */
  readonly namespace: string | undefined
  readonly events?: number
  readonly bytes?: number
}

export interface PlannedPolicy {
  readonly rules: readonly PlannedRule[]
  readonly budgets: readonly PlannedBudget[]
}

/** `--event-ttl`. */
export const DEFAULT_SECONDS = 45

/** Undefined: it never expires. */
export function lifetimeMs({ rules }: PlannedPolicy, facts: Facts): number | undefined {
  for (const { match, seconds } of rules) {
    const isMatch = Object.entries(match).every(
      ([field, value]) => facts[field as keyof Facts] === value,
    )
    if (isMatch) return seconds === 'never' ? undefined : seconds * 1000
  }
  return DEFAULT_SECONDS * 1000
}

export function fileText({ rules, budgets }: PlannedPolicy): string {
  const policy = {
    apiVersion: 'tidings.dev/v1alpha1',
    kind: 'RetentionPolicy',
    rules: rules.map(({ name, match, seconds }) => ({
      name,
      ...match,
      lifetime: seconds === 'never' ? seconds : `${seconds}s`,
    })),
    budgets: budgets.map(({ namespace, ...budget }) => ({
      ...budget,
      per: namespace === undefined ? 'Cluster' : 'Namespace',
      ...(namespace === undefined ? {} : { namespace }),
    })),
  }
  return `${JSON.stringify(policy)}\n`
}

/** All events expire within 2 s. */
export const EVERYTHING_EXPIRES: PlannedPolicy = {
  rules: [{ name: 'all', match: {}, seconds: 2 }],
  budgets: [],
}

/** The order of rules is random: some hide others, and an event's lifetime changes with the policy. */
export function drawPolicy(random: Random): PlannedPolicy {
  const rules = Array.from({ length: 1 + random.below(5) }, (_, index): PlannedRule => {
    const match: { -readonly [field in keyof Facts]?: Facts[field] } = {
      namespace: random.pick(NAMESPACES),
    }
    if (random.chance(0.4)) match.type = random.pick(['Warning', 'Normal'])
    if (random.chance(0.3)) match.reason = random.pick(REASONS)
    if (random.chance(0.1)) match.kind = random.pick(['Pod', 'Node'])
    return { name: `r${index}`, match, seconds: random.pick([2, 4, 8, 15, 30, 90, 'never']) }
  })
  const budgets: PlannedBudget[] = [
    { name: 'full', namespace: 'full', events: random.pick([80, 150, 300]) },
    { name: 'fat', namespace: 'fat', bytes: random.pick([40_000, 100_000, 200_000]) },
    { name: 'alarms', namespace: 'alarms', events: 100, bytes: random.pick([20_000, 80_000]) },
    { name: 'cluster', namespace: undefined, events: random.pick([300, 700, 1_200]) },
    { name: 'cluster-bytes', namespace: undefined, bytes: 400_000 },
  ]
  // The first budget that matches a scope applies: only one of the two for the cluster is used.
  const unused = random.chance(0.5) ? 'cluster' : 'cluster-bytes'
  return { rules, budgets: budgets.filter(({ name }) => name !== unused && random.chance(0.8)) }
}
