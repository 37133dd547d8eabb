import type { EventGroup } from '../api/event-groups.ts'
import { badRequest } from '../api/status.ts'
import { type DecodedEvent, decodeEventTree } from './event-json.ts'
import { EVENT_VALUES_MAX } from './json-text.ts'
import { opened } from './kube-protobuf.ts'
import { decodeStruct, ProtobufError } from './protobuf-struct.ts'

/**
 * An event as a client sent it, in protobuf; fails with a StatusError: 400, or 413 for too
 * much. Fields that nobody knows are not told of: protobuf is made to be read like that.
 */
export function decodeEventMessage(body: Buffer, group: EventGroup): DecodedEvent {
  try {
    const { kind, apiVersion, raw } = opened(body)
    // What it says of itself is held to the same rules as in JSON.
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
