import type { RetentionPolicy, RetentionRule } from './policy.ts'

/** The fields of a rule that depend on the event, in the order in which they are shown. */
const EVENT_FIELDS = ['type', 'reason', 'kind', 'controller'] as const

/**
 * The rules that can apply to the events of a namespace, or of a whole cluster, in order, up to the
 * first that matches all of them.
 */
export function effectiveRules(
  { rules }: RetentionPolicy,
  cluster: string,
  namespace: string | undefined,
): readonly RetentionRule[] {
  const found: RetentionRule[] = []
  for (const rule of rules) {
    const { selector } = rule
    if (selector.cluster?.includes(cluster) === false) continue
    if (namespace !== undefined && selector.namespace?.includes(namespace) === false) continue
    found.push(rule)
    const isEverywhere = namespace !== undefined || selector.namespace === undefined
    if (isEverywhere && EVENT_FIELDS.every((field) => selector[field] === undefined)) break
  }
  return found
}

/**
 * The rule's selector as text, such as `Warning` or `reason=Pulling|Pulled controller=kubelet`; empty
 * when it selects everything. Includes the namespaces only for a whole cluster.
 */
export function selectionText({ selector }: RetentionRule, namespace: string | undefined): string {
  const fields = namespace === undefined ? (['namespace', ...EVENT_FIELDS] as const) : EVENT_FIELDS
  return fields
    .flatMap((field) => {
      const values = selector[field]?.join('|')
      if (values === undefined) return []
      // A type explains itself.
      return [field === 'type' ? values : `${field}=${values}`]
    })
    .join(' ')
}
