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
import type { Work } from '../parts/use-load.ts'

export const FIELDS: readonly SourceField[] = ['controller', 'namespace', 'reason', 'object']

const TOP = 10
const BUCKETS = 40
/**
 * Sparklines requested when ordered by rate: who writes most now may not have written most in the
 * range. The server returns at most 50.
 */
const SPARKS_BY_RATE = 50

/** The data of one panel. */
export interface Panel {
  /** Undefined until known. Older data stays until then. */
  readonly groups: readonly SourceGroup[] | undefined
  readonly error: ApiError | undefined
  /** Undefined until known, or if the server does not provide them. */
  readonly sparks: ReadonlyMap<string, SparkData> | undefined
  readonly isLoading: boolean
}

type Panels = Readonly<Partial<Record<SourceField, Panel | undefined>>>

export interface Sources {
  readonly panels: Panels
  /** A server or permission error, which concerns all panels. */
  readonly error: ApiError | undefined
  /** The basis of the last answer. */
  readonly basis: Basis | undefined
  readonly work: Work
}

const EMPTY: Panel = { groups: undefined, error: undefined, sparks: undefined, isLoading: true }

/**
 * Loads the panels. The server computes one summary per user at a time, so they are requested one
 * after the other: first all names, then all sparklines. Pending requests are cancelled when the
 * inputs change.
 */
export function useSources(order: SourceOrder): Sources {
  const { client, query, nowMs } = usePage()
  const [panels, setPanels] = useState<Panels>({})
  const [error, setError] = useState<ApiError>()
  const [basis, setBasis] = useState<Basis>()
  /** A refresh loads again. */
  const [cancelledMs, setCancelledMs] = useState<number>()
  const isCancelled = cancelledMs === nowMs
  const isLoading =
    error === undefined &&
    !isCancelled &&
    Object.values(panels).some((panel) => panel?.isLoading === true)
  useHold(isLoading)
  useEffect(() => {
    if (isCancelled) return
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
  }, [client, query, nowMs, order, isCancelled])
  const cancel = (): void => setCancelledMs(isLoading ? nowMs : undefined)
  const goOn = (): void => setCancelledMs(undefined)
  return { panels, error, basis, work: { isLoading, isCancelled, cancel, goOn } }
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
      // Another field can succeed only if the server rejected this field's query.
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
      // Sparklines are optional: the figures cover the same range without them.
      show(field, { sparks: undefined })
    }
  }

  /** User names are shown only to those who may see them. */
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
