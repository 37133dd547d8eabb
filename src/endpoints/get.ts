import { readVersion } from '../registry/list-position.ts'
import type { Endpoint, EventApi, OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { readGetOptions } from './get-options.ts'
import { negotiateObject } from './negotiate.ts'

/** GET …/namespaces/{namespace}/events/{name} */
export function getEvent({ registry, forms }: EventApi): Endpoint<OneEvent> {
  return async (request, { namespace, name }) => {
    const form = forms.answer(negotiateObject(request))
    const asked = readGetOptions(request.query).resourceVersion
    const notOlderThan = readVersion(asked)
    const { signal } = request
    const event = await registry.get({ namespace, name }, { notOlderThan, asked, signal })
    return eventResponse(200, form, event)
  }
}
