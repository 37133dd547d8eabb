import { attributesOf } from '../gate/attributes.ts'
import { CreationNeeded, type Updated } from '../registry/registry.ts'
import { admitOnce, type Endpoint, type EventApi, type OneEvent } from './event-api.ts'
import { eventResponse } from './event-response.ts'
import { negotiateObject } from './negotiate.ts'
import { afterReading, checkName, placedIn, readSentEvent, receiveBody } from './sent-event.ts'
import { readUpdateOptions } from './write-options.ts'

/** PUT …/namespaces/{namespace}/events/{name}: replaces the event, or creates it. */
export function updateEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, forms, apiVersion } = api
  return async (request, { namespace, name }, caller) => {
    const form = forms.answer(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun } = readUpdateOptions(request.query)
    const sent = readSentEvent(body, { apiVersion, fieldValidation })
    const event = placedIn(namespace, sent.event)
    checkName(event, name)
    await afterReading(body.bytes)
    const admit = admitOnce(api, caller)
    const write = (mayCreate: boolean): Promise<Updated> =>
      registry.update({ namespace, name }, event, { isDryRun, mayCreate, admit })
    let updated: Updated
    try {
      updated = await write(false)
    } catch (error) {
      if (!(error instanceof CreationNeeded)) throw error
      // Known only now, and a permission of its own.
      await caller.authorize({ ...attributesOf(request), verb: 'create' })
      updated = await write(true)
    }
    return eventResponse(updated.isCreated ? 201 : 200, form, updated.event, sent.warnings)
  }
}
