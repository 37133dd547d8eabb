import { recorded, recordedNow } from '../../lib/tracing/span.ts'
import {
  checkName,
  placedIn,
  readSentEvent,
  receiveBody,
  yieldIfLong,
} from '../request/event-body.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { managerOf, readUpdateOptions } from '../request/write-options.ts'
import { eventResponse } from '../response/respond.ts'
import { withWarnings } from '../response/warnings.ts'
import { orCreate } from './create-on-update.ts'
import { type Endpoint, type EventApi, type OneEvent, writerOf } from './event-api.ts'

/** PUT …/namespaces/{namespace}/events/{name}: replaces the event, or creates it. */
export function updateEvent(api: EventApi): Endpoint<OneEvent> {
  const { registry, encoders, group } = api
  return async (request, target, caller) => {
    const { cluster } = target
    const { namespace, name } = target.place
    const encoder = encoders.response(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun, fieldManager } = readUpdateOptions(request.query)
    const sent = recordedNow(request.span, 'decode', () =>
      readSentEvent(body, { group, fieldValidation }),
    )
    await yieldIfLong(body.bytes)
    const writer = writerOf(caller)
    const manager = (): string => managerOf(fieldManager, request.headers['user-agent'])
    const updated = await withWarnings(
      () => sent.warnings,
      async () => {
        const event = placedIn(namespace, sent.event)
        checkName(event, name)
        return orCreate(target, caller, (mayCreate) =>
          recorded(request.span, 'registry update', (span) =>
            registry.update({ cluster, namespace, name }, event, {
              isDryRun,
              mayCreate,
              writer,
              manager,
              span,
            }),
          ),
        )
      },
    )
    return eventResponse(updated.isCreated ? 201 : 200, encoder, updated.event, sent.warnings)
  }
}
