/** Suggests filter values from the stored events. */
import type { ApiClient } from '../../api/client.ts'
import { listNamespaces } from '../../api/namespaces.ts'
import { summary } from '../../api/summaries.ts'
import { type FilterName, NO_FILTERS, type Query } from '../../model/query.ts'
import { spanOf } from '../../model/range.ts'
import { exactFilter } from '../../model/selector.ts'

/** How long an answer is cached. */
const KEPT_MS = 60_000
const VALUES_MAX = 50
/** Cached answers for places and ranges; the oldest is evicted. */
const ANSWERS_MAX = 40

interface Answer {
  readonly untilMs: number
  readonly values: Promise<readonly string[]>
}

export class Suggestions {
  readonly #client: ApiClient
  readonly #answers = new Map<string, Answer>()

  constructor(client: ApiClient) {
    this.#client = client
  }

  /** Empty if the values are unknown or the user may not see them. Never rejects. */
  async valuesOf(
    filter: FilterName,
    query: Query,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const nowMs = Date.now()
    const { cluster, namespace, range } = query
    const key = JSON.stringify([filter, cluster, filter === 'namespace' ? '' : [namespace, range]])
    const known = this.#answers.get(key)
    if (known !== undefined && known.untilMs > nowMs) return known.values
    const values = this.#load(filter, { query, nowMs, signal }).catch(() => {
      // The next request may succeed.
      if (this.#answers.get(key)?.values === values) this.#answers.delete(key)
      return []
    })
    this.#answers.delete(key)
    this.#answers.set(key, { untilMs: nowMs + KEPT_MS, values })
    const [oldest] = this.#answers.keys()
    if (this.#answers.size > ANSWERS_MAX && oldest !== undefined) this.#answers.delete(oldest)
    return values
  }

  async #load(
    filter: FilterName,
    { query, nowMs, signal }: { query: Query; nowMs: number; signal: AbortSignal },
  ): Promise<readonly string[]> {
    switch (filter) {
      case 'namespace':
        return listNamespaces(this.#client, query.cluster, signal)
      case 'kind':
      case 'workload':
      case 'reason':
      case 'controller': {
        const { cluster, namespace } = query
        const { groups } = await summary(this.#client, {
          filters: { ...NO_FILTERS, cluster, namespace },
          span: spanOf(query.range, nowMs),
          groupBy: filter,
          order: 'count',
          limit: VALUES_MAX,
          signal,
        })
        // Two namespaces may have workloads of the same name.
        const found = new Set(groups.map(({ values }) => values[filter] ?? ''))
        return [...found].filter((value) => value !== '').map(exactFilter)
      }
      default:
        return []
    }
  }
}
