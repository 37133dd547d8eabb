import { coreGroup, type EventGroup } from '../api/event-groups.ts'
import type { JsonObject } from '../lib/json.ts'
import { readEncoded } from './event-json.ts'
import type { EventView } from './event-shapes.ts'
import { StructEncoder } from './struct-encoding.ts'

/** Events as the callers of a group are shown them. What is stored has the shape of events.k8s.io. */
export function viewOf(group: EventGroup): EventView {
  const { apiVersion } = group
  if (group.type !== coreGroup.type) return { apiVersion, body: (body) => body }
  const encoder = new StructEncoder(group.type)
  return {
    apiVersion,
    body: (body) => Buffer.from(encoder.text(group.fromEvent(readEncoded(body)) as JsonObject)),
  }
}

/** What is stored, as a tree of its own in the names of a group: everything that is printed. */
export function eventTree(body: Buffer, { apiVersion, body: shown }: EventView): JsonObject {
  const type = `"kind":"Event","apiVersion":${JSON.stringify(apiVersion)}`
  return JSON.parse(`{${type},${shown(body).toString('utf8', 1)}`)
}
