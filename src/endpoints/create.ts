import { admitOnce, type Endpoint, type EventApi, type EventCollection } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject } from './negotiate.ts'
import { afterReading, placedIn, readSentEvent, receiveBody } from './sent-event.ts'
import { withWarnings } from './warnings.ts'
import { readCreateOptions } from './write-options.ts'

/**
 * POST …/namespaces/{namespace}/events
 *
 * The form of the answer is settled before the body is read: a client that asks for one we lack
 * must get its 406 having changed nothing.
 */
export function createEvent(api: EventApi): Endpoint<EventCollection> {
  const { registry, forms, group } = api
  return async (request, { namespace }, caller) => {
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun } = readCreateOptions(request.query)
    const { event, warnings } = readSentEvent(body, { group, fieldValidation })
    await afterReading(body.bytes)
    const created = await withWarnings(
      () => warnings,
      () =>
        registry.create(namespace, placedIn(namespace, event), {
          isDryRun,
          admit: admitOnce(api, caller),
        }),
    )
    return eventResponse(201, form, created, warnings)
  }
}
