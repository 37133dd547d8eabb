/** Events that clients write: small, all fields that selectors use, and the mark of the operation. */
import type { Event } from '../../../src/api/event.ts'
import { facetsOf, tagText } from '../checker/stored-text.ts'

/** The stored form, for clients that write to the storage directly. */
export function storedBody(path: string, operation: number, facet: number): Buffer {
  const slash = path.indexOf('/')
  const namespace = path.slice(0, slash)
  const name = path.slice(slash + 1)
  const facets = facetsOf(facet)
  const { reason, type, controller, regardingName, regardingUid, relatedName, team } = facets
  const eventTime = timeText(facets.lastSeenMs)
  return Buffer.from(
    `{"metadata":{"name":"${name}","namespace":"${namespace}","uid":"uid-${operation}",` +
      `"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"team":"${team}"},` +
      `"annotations":{"op":"${tagText(operation, facet)}"}},"eventTime":"${eventTime}",` +
      `"reportingController":"${controller}","reportingInstance":"instance-0","action":"Testing",` +
      `"reason":"${reason}","regarding":{"kind":"Pod","namespace":"${namespace}",` +
      `"name":"${regardingName}","uid":"${regardingUid}"},` +
      `"related":{"kind":"Node","name":"${relatedName}"},"note":"one of many","type":"${type}",` +
      `"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}`,
  )
}

/** The event as a client sends it. */
export function newEvent(
  metadata: Pick<Event['metadata'], 'name' | 'generateName' | 'namespace'>,
  operation: number,
  facet: number,
): Event {
  const facets = facetsOf(facet)
  const { reason, type, controller, regardingName, regardingUid, relatedName, team } = facets
  return {
    metadata: {
      ...metadata,
      labels: { team },
      annotations: { op: tagText(operation, facet) },
    },
    eventTime: timeText(facets.lastSeenMs),
    reportingController: controller,
    reportingInstance: 'instance-0',
    action: 'Testing',
    reason,
    regarding: {
      kind: 'Pod',
      namespace: metadata.namespace ?? '',
      name: regardingName,
      uid: regardingUid,
    },
    related: { kind: 'Node', name: relatedName },
    note: 'one of many',
    type,
  }
}

/** The event with the mark of another operation: most of its other fields are immutable. */
export function remarked(event: Event, operation: number, facet: number): Event {
  return {
    ...event,
    metadata: { ...event.metadata, annotations: { op: tagText(operation, facet) } },
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}
