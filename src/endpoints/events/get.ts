import { recorded } from '../../lib/tracing/span.ts'
import { readVersion } from '../../registry/read/list-position.ts'
import { readGetOptions } from '../request/get-options.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { eventResponse } from '../response/event-response.ts'
import type { Endpoint, OneEvent, OneObject, ReadApi } from './event-api.ts'

/** GET …/namespaces/{namespace}/events/{name}, or …/{name} for an object without a namespace. */
export function getEvent({ registry, encoders }: ReadApi): Endpoint<OneEvent | OneObject> {
  return async (request, { cluster, place }) => {
    const { name } = place
    const namespace = place.kind === 'object' ? place.namespace : ''
    const encoder = encoders.response(negotiateObject(request))
    const versionText = readGetOptions(request.query).resourceVersion
    const notOlderThan = readVersion(versionText)
    const { signal } = request
    const event = await recorded(request.span, 'registry get', (span) =>
      registry.get({ cluster, namespace, name }, { notOlderThan, versionText, signal, span }),
    )
    return eventResponse(200, encoder, event)
  }
}
