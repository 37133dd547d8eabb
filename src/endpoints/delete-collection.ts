import type { Response } from '../http/exchange.ts'
import { detailsOf } from '../registry/storage-errors.ts'
import { receiveDeleteOptions } from './delete.ts'
import type { Endpoint, EventApi, EventCollection } from './event-api.ts'
import { listQuery, readOptions } from './list-query.ts'
import { negotiateList } from './negotiate.ts'
import { successResponse } from './respond.ts'

/**
 * DELETE …/namespaces/{namespace}/events
 *
 * Deletes what a list with the same options would show. Not one transaction: it stops soon after the
 * first event that cannot be deleted, and what was deleted before then is gone. With a limit the
 * answer says where to go on. A client that hangs up stops nothing, as with every write; time does.
 */
export function deleteEvents(api: EventApi): Endpoint<EventCollection> {
  const { registry, lister, remover, group, requestTimeoutMs } = api
  return async (request, path): Promise<Response> => {
    const representation = negotiateList(request)
    const query = listQuery(path, readOptions(request.query, path, group))
    const deletion = await receiveDeleteOptions(request)
    const signal = AbortSignal.timeout(requestTimeoutMs)
    const listing = await lister.list({ ...query, signal })
    await remover.remove(listing.pieces, { selector: query.selector, deletion, signal })
    const { continueToken, remainingItemCount } = listing
    return successResponse(representation, {
      metadata: {
        ...(continueToken === undefined ? {} : { continue: continueToken }),
        ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
      },
      details: detailsOf(registry.names),
    })
  }
}
