import { queryBoolean } from '../../api/query-boolean.ts'
import { badRequest } from '../../api/status.ts'
import { recorded } from '../../lib/tracing/span.ts'
import { readVersion } from '../../registry/read/list-position.ts'
import { negotiateObject } from '../request/negotiate.ts'
import { readText } from '../request/query-values.ts'
import { eventResponse } from '../response/respond.ts'
import type { Endpoint, OneEvent, OneObject, ReadApi } from './event-api.ts'

/** GET …/namespaces/{namespace}/events/{name}, or …/{name} for an object without a namespace. */
export function getEvent({ registry, encoders }: ReadApi): Endpoint<OneEvent | OneObject> {
  return async (request, { cluster, place }) => {
    const { name } = place
    const namespace = place.kind === 'object' ? place.namespace : ''
    const encoder = encoders.response(negotiateObject(request))
    const versionText = readVersionText(request.query)
    const notOlderThan = readVersion(versionText)
    const { signal } = request
    const event = await recorded(request.span, 'registry get', (span) =>
      registry.get({ cluster, namespace, name }, { notOlderThan, versionText, signal, span }),
    )
    return eventResponse(200, encoder, event)
  }
}

/** Throws a 400 for `export`, which Kubernetes has removed. */
export function readVersionText(query: URLSearchParams): string {
  if (queryBoolean(query, 'export') === true) {
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported')
  }
  return readText(query, 'resourceVersion')
}
