import type { ShownEvent } from '../../codec/event/event-bytes.ts'
import { recorded, recordedNow } from '../../lib/tracing/span.ts'
import { placedIn, readSentEvent, receiveBody, yieldIfLong } from '../request/event-body.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { readCreateOptions } from '../request/write-options.ts'
import { eventResponse } from '../response/respond.ts'
import { withWarnings } from '../response/warnings.ts'
import { type Endpoint, type EventApi, type EventCollection, writerOf } from './event-api.ts'

/**
 * POST …/namespaces/{namespace}/events
 *
 * The format of the response is negotiated before the body is read, so that a 406 changes nothing.
 */
export function createEvent(api: EventApi): Endpoint<EventCollection> {
  const { registry, encoders, group } = api
  return async (request, { cluster, place: { namespace } }, caller) => {
    const encoder = encoders.response(negotiateObject(request))
    const body = await receiveBody(request)
    const { fieldValidation, isDryRun } = readCreateOptions(request.query)
    const { event, warnings } = recordedNow(request.span, 'decode', () =>
      readSentEvent(body, { group, fieldValidation }),
    )
    const yielding = yieldIfLong(body.bytes)
    if (yielding !== undefined) await yielding
    const create = (): Promise<ShownEvent> =>
      recorded(request.span, 'registry create', (span) =>
        registry.create({ cluster, namespace }, placedIn(namespace, event), {
          isDryRun,
          sentBytes: body.bytes.length,
          writer: writerOf(caller),
          span,
        }),
      )
    const created = await (warnings.length === 0 ? create() : withWarnings(() => warnings, create))
    return eventResponse(201, encoder, created, warnings)
  }
}
