import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import type { RetentionBudget } from '../policy.ts'

const LINE_EVERY_MS = 60_000

/** Events that one budget has deleted in one cluster since its last log line. */
interface Evicted {
  readonly budget: RetentionBudget
  readonly cluster: string
  /** Deleted events, keyed by namespace. */
  readonly perNamespace: Map<string, number>
  events: number
  warnings: number
  lastLineAt: number
}

/**
 * Logs what budgets delete: one line a minute per budget and cluster, the first one immediately.
 * Nobody requested these deletes individually, so they should not go unnoticed.
 */
export class EvictionLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #evicted = new Map<string, Evicted>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  count({ key, fields }: Pick<StoredEvent, 'key' | 'fields'>, budget: RetentionBudget): void {
    const evicted = this.#entryOf(budget, key.cluster)
    evicted.events++
    if (fields.type === 'Warning') evicted.warnings++
    evicted.perNamespace.set(key.namespace, (evicted.perNamespace.get(key.namespace) ?? 0) + 1)
  }

  /** Writes the lines that are due. Must be called regularly, even when nothing is evicted. */
  write({ isEnd = false }: { readonly isEnd?: boolean } = {}): void {
    const now = this.#clock.now()
    for (const [id, evicted] of this.#evicted) {
      if (!isEnd && now < evicted.lastLineAt + LINE_EVERY_MS) continue
      if (evicted.events === 0 || isEnd) this.#evicted.delete(id)
      if (evicted.events === 0) continue
      this.#log.info('Events evicted for a budget', lineOf(evicted))
      evicted.perNamespace.clear()
      Object.assign(evicted, { events: 0, warnings: 0, lastLineAt: now })
    }
  }

  #entryOf(budget: RetentionBudget, cluster: string): Evicted {
    const id = `${cluster}/${budget.name}`
    const known = this.#evicted.get(id)
    if (known !== undefined) return known
    const perNamespace = new Map<string, number>()
    const lastLineAt = Number.NEGATIVE_INFINITY
    const evicted: Evicted = { budget, cluster, perNamespace, events: 0, warnings: 0, lastLineAt }
    this.#evicted.set(id, evicted)
    return evicted
  }
}

/** `namespace` is the one that lost the most events; `namespaces` counts those that lost any. */
function lineOf({ budget, cluster, perNamespace, events, warnings }: Evicted) {
  const [most] = [...perNamespace].sort(([, one], [, other]) => other - one)
  const where = most && { namespace: most[0], namespaces: perNamespace.size }
  return { budget: budget.name, cluster, ...where, events, warnings }
}
