import { orCreate } from './creation.ts'
import { admitOnce, type Endpoint, type EventApi, type OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject } from './negotiate.ts'
import { afterReading, checkName, placedIn, readSentEvent, receiveBody } from './sent-event.ts'
import { withWarnings } from './warnings.ts'
import { managerOf, readUpdateOptions } from './write-options.ts'

/** PUT …/namespaces/{namespace}/events/{name}: replaces the event, or creates it. */
export function updateEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, forms, group } = api
  return async (request, { namespace, name }, caller) => {
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun, fieldManager } = readUpdateOptions(request.query)
    const sent = readSentEvent(body, { group, fieldValidation })
    await afterReading(body.bytes)
    const admit = admitOnce(api, caller)
    const manager = (): string => managerOf(fieldManager, request.headers['user-agent'])
    const updated = await withWarnings(
      () => sent.warnings,
      async () => {
        const event = placedIn(namespace, sent.event)
        checkName(event, name)
        return orCreate(request, caller, (mayCreate) =>
          registry.update({ namespace, name }, event, { isDryRun, mayCreate, admit, manager }),
        )
      },
    )
    return eventResponse(updated.isCreated ? 201 : 200, form, updated.event, sent.warnings)
  }
}
