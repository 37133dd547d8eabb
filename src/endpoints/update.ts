import type { Endpoint, EventApi, OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject } from './negotiate.ts'
import { afterReading, checkName, placedIn, readSentEvent, receiveBody } from './sent-event.ts'
import { managerOf, readUpdateOptions } from './write-options.ts'

/** PUT …/namespaces/{namespace}/events/{name}: replaces the event, or creates it. */
export function updateEvent({ registry, forms, group }: EventApi): Endpoint<OneEvent> {
  return async (request, { namespace, name }) => {
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun, fieldManager } = readUpdateOptions(request.query)
    const sent = readSentEvent(body, { group, fieldValidation })
    const event = placedIn(namespace, sent.event)
    checkName(event, name)
    await afterReading(body.bytes)
    const manager = (): string => managerOf(fieldManager, request.headers['user-agent'])
    const updated = await registry.update({ namespace, name }, event, { isDryRun, manager })
    return eventResponse(updated.isCreated ? 201 : 200, form, updated.event, sent.warnings)
  }
}
