import { useEffect, useState } from 'preact/hooks'
import type { Basis } from '../api/answer.ts'
import { type ApiError, asApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { mayI } from '../api/session.ts'
import { histogram, type SourceGroup, summary } from '../api/summaries.ts'
import type { Query, SourceOrder } from '../model/query.ts'
import { type Span, spanOf } from '../model/range.ts'
import { hasRate, type SourceField, type SparkData, sparklines } from '../model/sources.ts'
import { useHold, usePage } from '../parts/page.ts'

export const FIELDS: readonly SourceField[] = ['controller', 'namespace', 'reason', 'object']

const TOP = 10
const BUCKETS = 40
/** Who writes most now need not have written most in the range. The server has at most 50. */
const SPARKS_BY_RATE = 50

/** What is known of one panel. */
export interface Panel {
  /** Undefined until it is known. What was known before stays until then. */
  readonly groups: readonly SourceGroup[] | undefined
  readonly error: ApiError | undefined
  /** Undefined until they are known, and where the server does not have them. */
  readonly sparks: ReadonlyMap<string, SparkData> | undefined
  readonly isLoading: boolean
}

type Panels = Readonly<Partial<Record<SourceField, Panel | undefined>>>

export interface Sources {
  readonly panels: Panels
  /** Of the server or of a permission: it concerns all panels. */
  readonly error: ApiError | undefined
  /** Of the last answer. */
  readonly basis: Basis | undefined
  readonly isLoading: boolean
}

const EMPTY: Panel = { groups: undefined, error: undefined, sparks: undefined, isLoading: true }

/**
 * Loads the panels. A server computes one summary of a user at a time, so they are asked for one
 * after the other: first all names, then all sparklines. What is under way is cancelled when the
 * inputs change.
 */
export function useSources(order: SourceOrder): Sources {
  const { client, query, nowMs } = usePage()
  const [panels, setPanels] = useState<Panels>({})
  const [error, setError] = useState<ApiError>()
  const [basis, setBasis] = useState<Basis>()
  const isLoading = error === undefined && Object.values(panels).some((panel) => panel?.isLoading)
  useHold(isLoading)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const show: LoadOptions['show'] = (field, change) => {
      if (signal.aborted) return
      setPanels((before) => ({
        ...before,
        [field]: change === undefined ? undefined : { ...(before[field] ?? EMPTY), ...change },
      }))
    }
    for (const field of FIELDS) show(field, { isLoading: true })
    const span = spanOf(query.range, nowMs)
    const showBasis = (found: Basis): void => {
      if (!signal.aborted) setBasis(found)
    }
    const load = new Load({ client, query, order, span, signal, show, showBasis })
    load.run().then(
      () => signal.aborted || setError(undefined),
      (failure) => signal.aborted || setError(asApiError(failure)),
    )
    return () => controller.abort()
  }, [client, query, nowMs, order])
  return { panels, error, basis, isLoading }
}

interface LoadOptions {
  readonly client: ApiClient
  readonly query: Query
  readonly order: SourceOrder
  readonly span: Span
  readonly signal: AbortSignal
  /** Undefined removes the panel. */
  readonly show: (field: SourceField, change: Partial<Panel> | undefined) => void
  readonly showBasis: (basis: Basis) => void
}

class Load {
  readonly #options: LoadOptions

  constructor(options: LoadOptions) {
    this.#options = options
  }

  /** Rejects when it is cancelled, and when all panels would fail. */
  async run(): Promise<void> {
    const found: SourceField[] = []
    for (const field of FIELDS) if (await this.#names(field)) found.push(field)
    if (await this.#mayListUsers()) await this.#names('user')
    else this.#options.show('user', undefined)
    for (const field of found) await this.#sparks(field)
  }

  async #names(field: SourceField): Promise<boolean> {
    const { client, query: filters, span, order, signal, show } = this.#options
    const isOfUsers = field === 'user'
    try {
      const { groups, basis } = await summary(client, {
        ...{ filters, span, signal },
        groupBy: field,
        order: isOfUsers || (order === 'rate' && hasRate(field, filters)) ? 'rate' : 'count',
        limit: TOP,
      })
      this.#options.showBasis(basis)
      show(field, { groups, error: undefined, isLoading: false })
      return groups.length > 0
    } catch (error) {
      const failure = asApiError(error)
      // Only a query that the server does not accept may be accepted for another field.
      if (signal.aborted || failure.code !== 400) throw failure
      show(field, { error: failure, isLoading: false })
      return false
    }
  }

  async #sparks(field: SourceField): Promise<void> {
    const { client, query: filters, span, order, signal, show } = this.#options
    try {
      const limit = order === 'rate' ? SPARKS_BY_RATE : TOP
      const by = { filters, span, signal, buckets: BUCKETS, by: field, limit }
      show(field, { sparks: sparklines((await histogram(client, by)).buckets) })
    } catch {
      signal.throwIfAborted()
      // They are an addition: without them, the figures say the same of the whole range.
      show(field, { sparks: undefined })
    }
  }

  /** Names of users are shown to those only who may see them. */
  async #mayListUsers(): Promise<boolean> {
    const { client, query, signal } = this.#options
    if (query.namespace !== '') return false
    const access = {
      ...{ verb: 'list', group: 'tidings.dev', resource: 'eventsummaries', subresource: 'users' },
      ...{ cluster: query.cluster, namespace: '' },
    }
    const isAllowed = await mayI(client, access).catch(() => false)
    signal.throwIfAborted()
    return isAllowed
  }
}
