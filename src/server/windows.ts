import type { CachedStorage } from '../cache/cached-storage.ts'
import type { WindowStatus, WindowStatuses } from '../endpoints/objects/retention-windows.ts'
import { formatLongDuration } from '../lib/go/duration.ts'
import type { RetentionPolicy } from '../retention/policy.ts'
import type { Retention } from '../retention/retention.ts'
import { effectiveRules, selectionText } from '../retention/windows/effective-rules.ts'
import { StorageError } from '../storage/errors.ts'
import type { StoredSize } from '../storage/stored-sizes.ts'

/** Joins what memory has with what the policy of this replica says, and with the account. */
export function windowStatuses(
  { sizes, oldest }: Pick<CachedStorage, 'sizes' | 'oldest'>,
  retention: Pick<Retention, 'policy' | 'totals'>,
): WindowStatuses {
  return {
    list: async (cluster, namespace, signal) => {
      const known = sizes.all()
      if (known === undefined) {
        const message = 'the events are being loaded'
        throw new StorageError({ kind: 'unavailable', message })
      }
      const wanted = [...known].filter(
        (size) =>
          (cluster === undefined || size.cluster === cluster) &&
          (namespace === undefined || size.namespace === namespace),
      )
      const { policy, totals } = retention
      const found: WindowStatus[] = []
      for (const size of wanted.sort(byName)) {
        signal.throwIfAborted()
        const name = size.namespace
        const evicted =
          name === undefined
            ? totals.get('clusters', size.cluster)
            : totals.get('namespaces', `${size.cluster}/${name}`)
        const oldestMs = await oldest.in({ cluster: size.cluster, namespace: name })
        found.push({ ...size, oldestMs, ...effective(policy, size), evicted })
      }
      return found
    },
  }
}

function effective(
  policy: RetentionPolicy,
  { cluster, namespace }: StoredSize,
): Pick<WindowStatus, 'lifetimes' | 'budget'> {
  const budget = policy.budgetOf(cluster, namespace)
  return {
    lifetimes: effectiveRules(policy, cluster, namespace).map((rule) => ({
      rule: rule.name,
      selects: selectionText(rule, namespace),
      lifetime: rule.lifetime === 'never' ? 'never' : formatLongDuration(rule.lifetime),
    })),
    budget: budget && { name: budget.name, events: budget.events, bytes: budget.bytes },
  }
}

/** By cluster, then by namespace; a cluster is before its namespaces. */
function byName(one: StoredSize, other: StoredSize): number {
  if (one.cluster !== other.cluster) return one.cluster < other.cluster ? -1 : 1
  return (one.namespace ?? '') < (other.namespace ?? '') ? -1 : 1
}
