/** The common parts of lists of summaries and of histograms. */
import { badRequest } from '../../api/status.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import type { Response } from '../../http/exchange.ts'
import type { InLane } from '../../lib/run-queue.ts'
import { windowOf } from '../../registry/read/field-requires.ts'
import { selectorWarnings } from '../../registry/read/selector-warnings.ts'
import { inApiTerms, type ResourceNames } from '../../registry/storage-errors.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventScope, StoredEvent } from '../../storage/storage.ts'
import { GROUPS_MAX, type TimeWindow, TooManyGroups } from '../../storage/summary.ts'
import { listResponse } from '../events/list.ts'
import { computedListing } from '../objects/computed-listing.ts'
import type { ListTarget } from '../request/list-options.ts'
import { listPlan } from '../request/list-plan.ts'
import { readLimitLabel } from '../request/option-labels.ts'
import { readInteger } from '../request/query-values.ts'
import { warningHeader } from '../response/warnings.ts'

export interface SummaryPlan extends Pick<ReturnType<typeof listPlan>, 'selector' | 'warnings'> {
  readonly scope: EventScope
  /** The time whose occurrences are counted; the selector has no bounds of time. */
  readonly window: TimeWindow
  readonly notOlderThan: Version | undefined
  readonly versionText: string | undefined
  /** Infinity if it was not sent. */
  readonly limit: number
}

/**
 * Plans which events a summary counts. Durations are relative to `nowMs`. Throws a 400 or a 422 for
 * invalid options.
 */
export function summaryPlan(target: ListTarget, nowMs: number): SummaryPlan {
  const { query } = target
  if ((query.get('continue') ?? '') !== '') throw badRequest('a summary has no further pages')
  if (query.get('resourceVersionMatch') === 'Exact') {
    throw badRequest('a summary is of the present: use resourceVersionMatch=NotOlderThan')
  }
  for (const bound of ['since', 'until']) {
    if (query.has(bound)) {
      throw badRequest(`${bound} is a field label: send fieldSelector=${bound}%3D<time>`)
    }
  }
  const parameter = readInteger(query, 'limit') ?? 0
  const limits = [parameter > 0 ? parameter : undefined, readLimitLabel(target)]
  // A list with a limit and a version is of exactly that version, because of its next pages.
  const unlimited = new URLSearchParams(query)
  unlimited.delete('limit')
  const { fields } = target
  if (fields instanceof Error) throw fields
  const others = fields.filter(({ field }) => field !== 'since' && field !== 'until')
  const plan = listPlan({ ...target, fields: others, query: unlimited }, { nowMs })
  const { scope, selector, notOlderThan, versionText } = plan
  const window = windowOf(fields, nowMs)
  return {
    scope,
    selector,
    window,
    warnings: [...plan.warnings, ...selectorWarnings([], window)],
    notOlderThan,
    versionText,
    limit: Math.min(...limits.filter((one) => one !== undefined)),
  }
}

/** Awaits the computation, and translates its errors into API errors. */
export async function computed<T>(
  work: Promise<T>,
  names: ResourceNames,
  { notOlderThan, versionText }: SummaryPlan,
): Promise<T> {
  try {
    return await inApiTerms(work, names, { wanted: notOlderThan, versionText, isRead: true })
  } catch (error) {
    if (!(error instanceof TooManyGroups)) throw error
    throw badRequest(
      `the histogram has more than ${GROUPS_MAX} counts, or too many values for its buckets: narrow the query with selectors, ` +
        'ask for fewer buckets, or send a limit, beyond which all values are counted together',
      error,
    )
  }
}

export interface ComputedObjects extends InLane {
  readonly version: Version
  readonly items: readonly StoredEvent[]
  readonly warnings: readonly string[]
}

/** Nothing is cached: the objects are made for this response. */
export function computedResponse(
  encoder: ResponseEncoder,
  { version, items, warnings, lane, signal }: ComputedObjects,
): Response {
  const listing = computedListing(version, items, encoder)
  return listResponse(encoder, listing, {
    lane,
    signal,
    runCache: new EncodedRunCache(),
    warning: warningHeader(warnings),
  })
}
