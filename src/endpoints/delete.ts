import { decodeDeleteOptions } from '../codec/delete-options.ts'
import type { Request } from '../http/exchange.ts'
import { detailsOf } from '../registry/storage-errors.ts'
import { type DeleteOptions, readDeleteOptions } from './delete-options.ts'
import type { Endpoint, EventApi, OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { bodyMediaType, negotiateObject } from './negotiate.ts'
import { successResponse } from './respond.ts'
import { receiveBytes } from './sent-event.ts'

/**
 * DELETE …/namespaces/{namespace}/events/{name}
 *
 * Answers a Status, or the event itself when finalizers keep it for a while.
 */
export function deleteEvent({ registry, forms }: EventApi): Endpoint<OneEvent> {
  return async (request, { namespace, name }) => {
    const representation = negotiateObject(request)
    const options = await receiveDeleteOptions(request)
    const deleted = await registry.delete({ namespace, name }, options)
    if (deleted.isGone) {
      const details = { ...detailsOf(registry.names, name), uid: deleted.uid }
      return successResponse(representation, { details })
    }
    // Said by a client that expects to wait for its dependents: it is told that this takes longer.
    const status = options.orphanDependents === false ? 202 : 200
    return eventResponse(status, forms.answer(representation), deleted.event)
  }
}

/** From the body if there is one, else from the query. */
export async function receiveDeleteOptions(request: Request): Promise<DeleteOptions> {
  const body = await receiveBytes(request)
  if (body.length === 0) return readDeleteOptions(request.query, undefined)
  return readDeleteOptions(request.query, decodeDeleteOptions(body, bodyMediaType(request)))
}
