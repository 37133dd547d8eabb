import type { Event } from '../../api/event.ts'
import type { EventGroup } from '../../api/event-groups.ts'
import { badRequest } from '../../api/status.ts'
import { EVENT_VALUES_MAX } from '../json/json-text.ts'
import { unwrapEnvelope } from '../struct/kube-protobuf.ts'
import { decodeStruct, ProtobufError } from '../struct/protobuf-struct.ts'
import { type DecodedEvent, decodeEventTree } from './event-json.ts'

/**
 * Decodes a protobuf body. Throws a StatusError: 400, or 413 if the body has too many values. Does
 * not report unknown fields, which protobuf decoders ignore by design.
 */
export function decodeEventMessage(body: Buffer, group: EventGroup): DecodedEvent {
  try {
    const { kind, apiVersion, raw } = unwrapEnvelope(body)
    // The kind and apiVersion are checked by the same rules as in JSON.
    const { event } = decodeEventTree({ kind, apiVersion }, group)
    return { event: { ...event, ...decodeBareEvent(raw, group) }, problems: [] }
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error
    throw badRequest(
      `the object provided is unrecognized (must be of type Event): ${error.message}`,
      error,
    )
  }
}

/**
 * Decodes an event without its envelope, as in a list. Throws a ProtobufError, or a StatusError
 * 413.
 */
export function decodeBareEvent(raw: Buffer, group: EventGroup): Event {
  return group.toEvent({ metadata: {}, ...decodeStruct(group.type, raw, EVENT_VALUES_MAX) })
}
