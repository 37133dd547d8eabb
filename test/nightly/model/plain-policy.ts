/** Random retention policies, and the lifetime that one gives to an event. */
import type { Random } from '../../support/random.ts'
import { type Choices, CLUSTERS, CONTROLLERS, KINDS, NAMESPACES, REASONS } from './made-events.ts'
import { type PlainEvent, textOf, treeOf } from './plain-event.ts'

type RuleField = 'cluster' | 'namespace' | 'type' | 'reason' | 'kind' | 'controller'

export interface MadeRule extends Readonly<Partial<Record<RuleField, string | readonly string[]>>> {
  readonly lifetime: string
}

/** The text of a policy file with these rules; JSON is YAML, too. */
export function policyText(rules: readonly MadeRule[]): string {
  return JSON.stringify({ apiVersion: 'tidings.dev/v1alpha1', kind: 'RetentionPolicy', rules })
}

export function madeRules(random: Random): readonly MadeRule[] {
  return Array.from({ length: 1 + random.below(5) }, () => madeRule(random))
}

/** Returns milliseconds, or `never`; `otherwise` if no rule matches. */
export function plainLifetime(
  rules: readonly MadeRule[],
  event: PlainEvent,
  otherwise: number,
): number | 'never' {
  const rule = rules.find((each) => appliesTo(each, event))
  if (rule === undefined) return otherwise
  return LIFETIMES.get(rule.lifetime) ?? 'never'
}

const LIFETIMES: ReadonlyMap<string, number | 'never'> = new Map<string, number | 'never'>([
  ['90s', 90_000],
  ['6h', 21_600_000],
  ['1h30m', 5_400_000],
  ['7d', 604_800_000],
  ['2w', 1_209_600_000],
  ['1w2d', 777_600_000],
  ['never', 'never'],
])

const VALUES: Readonly<Record<RuleField, Choices>> = {
  cluster: CLUSTERS,
  namespace: NAMESPACES,
  type: ['Normal', 'Warning'],
  reason: REASONS,
  kind: KINDS,
  controller: CONTROLLERS,
}

/** Has at least one field: a rule for every event must be the last. */
function madeRule(random: Random): MadeRule {
  const fields = Object.keys(VALUES) as [RuleField, ...RuleField[]]
  const chosen = fields.filter(() => random.chance(0.25))
  const names = chosen.length === 0 ? [random.pick(fields)] : chosen
  const values = names.map((name) => [name, madeValues(random, VALUES[name])])
  const lifetimes = [...LIFETIMES.keys()] as [string, ...string[]]
  return { ...Object.fromEntries(values), lifetime: random.pick(lifetimes) }
}

/** A file cannot ask for an empty value. */
function madeValues(random: Random, values: Choices): string | readonly string[] {
  const one = (): string => random.pick(values) || values[0]
  return random.chance(0.6) ? one() : Array.from({ length: 1 + random.below(3) }, one)
}

function appliesTo(rule: MadeRule, { key, tree }: PlainEvent): boolean {
  const has: Readonly<Record<RuleField, string>> = {
    cluster: key.cluster,
    namespace: key.namespace,
    type: textOf(tree, 'type'),
    reason: textOf(tree, 'reason'),
    kind: textOf(treeOf(tree, 'regarding'), 'kind'),
    controller: textOf(tree, 'reportingController'),
  }
  return Object.entries(has).every(([name, value]) => {
    const wanted = rule[name as RuleField]
    return wanted === undefined || [wanted].flat().includes(value)
  })
}
