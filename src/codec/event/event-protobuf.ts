import type { EventGroup } from '../../api/event-groups.ts'
import { badRequest } from '../../api/status.ts'
import { EVENT_VALUES_MAX } from '../json/json-text.ts'
import { unwrapEnvelope } from '../struct/kube-protobuf.ts'
import { decodeStruct, ProtobufError } from '../struct/protobuf-struct.ts'
import { type DecodedEvent, decodeEventTree } from './event-json.ts'

/**
 * Decodes a protobuf body; throws a StatusError: 400, or 413 if the body has too many values.
 * Unknown fields are not reported: protobuf decoders ignore them by design.
 */
export function decodeEventMessage(body: Buffer, group: EventGroup): DecodedEvent {
  try {
    const { kind, apiVersion, raw } = unwrapEnvelope(body)
    // The kind and apiVersion are checked by the same rules as in JSON.
    const { event } = decodeEventTree({ kind, apiVersion }, group)
    const read = decodeStruct(group.type, raw, EVENT_VALUES_MAX)
    return { event: { ...event, ...group.toEvent({ metadata: {}, ...read }) }, problems: [] }
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error
    throw badRequest(
      `the object provided is unrecognized (must be of type Event): ${error.message}`,
      error,
    )
  }
}
