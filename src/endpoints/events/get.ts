import { readVersion } from '../../registry/read/list-position.ts'
import { readGetOptions } from '../request/get-options.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { eventResponse } from '../response/event-response.ts'
import type { Endpoint, EventApi, OneEvent } from './event-api.ts'

/** GET …/namespaces/{namespace}/events/{name} */
export function getEvent({ registry, encoders }: EventApi): Endpoint<OneEvent> {
  return async (request, { place: { namespace, name } }) => {
    const encoder = encoders.response(negotiateObject(request))
    const versionText = readGetOptions(request.query).resourceVersion
    const notOlderThan = readVersion(versionText)
    const { signal } = request
    const event = await registry.get({ namespace, name }, { notOlderThan, versionText, signal })
    return eventResponse(200, encoder, event)
  }
}
