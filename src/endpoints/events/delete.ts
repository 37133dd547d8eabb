import { decodeDeleteOptions } from '../../codec/delete-options.ts'
import { attributesOf } from '../../gate/target.ts'
import type { Request } from '../../http/exchange.ts'
import { recorded } from '../../lib/tracing/span.ts'
import { detailsOf } from '../../registry/storage-errors.ts'
import { type DeleteOptions, readDeleteOptions } from '../request/delete-options.ts'
import { receiveBytes } from '../request/event-body.ts'
import { bodyMediaType, negotiateObject } from '../request/negotiate.ts'
import { eventResponse, successResponse } from '../response/respond.ts'
import type { Endpoint, EventApi, OneEvent } from './event-api.ts'

/**
 * DELETE …/namespaces/{namespace}/events/{name}
 *
 * Responds with a Status, or with the event itself when finalizers prevent the delete.
 */
export function deleteEvent({ registry, encoders }: EventApi): Endpoint<OneEvent> {
  return async (request, target, caller) => {
    const { cluster } = target
    const { namespace, name } = target.place
    const representation = negotiateObject(request)
    const options = await receiveDeleteOptions(request, readDeleteOptions)
    if (options.onlyDamaged) {
      await caller.authorize({ ...attributesOf(target), verb: 'unsafe-delete-ignore-read-errors' })
    }
    const deleted = await recorded(request.span, 'registry delete', (span) =>
      registry.delete({ cluster, namespace, name }, { ...options, span }),
    )
    if (deleted.isGone) {
      const details = { ...detailsOf(registry.names, name), uid: deleted.uid }
      return successResponse(representation, { details })
    }
    // Clients that send `false` expect to wait for dependents: 202 means that the delete continues.
    const status = options.orphanDependents === false ? 202 : 200
    return eventResponse(status, encoders.response(representation), deleted.event)
  }
}

/** Reads the options from the body if there is one, otherwise from the query. */
export async function receiveDeleteOptions(
  request: Request,
  read: typeof readDeleteOptions,
): Promise<DeleteOptions> {
  const body = await receiveBytes(request)
  if (body.length === 0) return read(request.query, undefined)
  return read(request.query, decodeDeleteOptions(body, bodyMediaType(request)))
}
