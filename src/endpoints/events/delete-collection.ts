import type { Response } from '../../http/exchange.ts'
import { laneOf } from '../../lib/run-queue.ts'
import { recorded } from '../../lib/tracing/span.ts'
import { detailsOf } from '../../registry/storage-errors.ts'
import { readCollectionDeleteOptions } from '../request/delete-options.ts'
import { listPlan } from '../request/list-plan.ts'
import { negotiateList } from '../request/negotiate.ts'
import { successResponse } from '../response/respond.ts'
import { warningHeader } from '../response/warnings.ts'
import { receiveDeleteOptions } from './delete.ts'
import type { Endpoint, EventApi, EventCollection } from './event-api.ts'

/**
 * DELETE …/namespaces/{namespace}/events
 *
 * Deletes the events that a list with the same options would return. It is not one transaction: it
 * stops soon after the first event that cannot be deleted, and earlier deletes are not undone. With
 * a limit, the response has a continue token. As for every write, a client that disconnects does
 * not cancel it; the timeout does.
 */
export function deleteEvents(api: EventApi): Endpoint<EventCollection> {
  const { registry, lister, collectionDelete, requestTimeoutMs } = api
  return async (request, target): Promise<Response> => {
    const representation = negotiateList(request)
    const query = listPlan(target, { nowMs: api.now() })
    const deletion = await receiveDeleteOptions(request, readCollectionDeleteOptions)
    const signal = AbortSignal.timeout(requestTimeoutMs)
    const listing = await lister.list({
      ...query,
      signal,
      lane: laneOf(request),
      span: request.span,
    })
    const { selector } = query
    await recorded(request.span, 'registry delete', (span) =>
      collectionDelete.remove(listing.open(), {
        selector,
        deletion: { ...deletion, span },
        signal,
      }),
    )
    const { continueToken, remainingItemCount } = listing
    const response = successResponse(representation, {
      metadata: {
        ...(continueToken === undefined ? {} : { continue: continueToken }),
        ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
      },
      details: detailsOf(registry.names),
    })
    const warning = warningHeader(query.warnings)
    return warning === undefined
      ? response
      : { ...response, headers: { ...response.headers, warning } }
  }
}
