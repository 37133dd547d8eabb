/** Requests for summaries and histograms, which show reasons, notes and objects of events. */
import { list, type MatrixRequest, SCOPES, SENDERS } from './matrix.ts'
import { PLACES, type Place, type SeededEvent, type Sender } from './model.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

/** All of them show what marks an event: its reason, object or note. */
const QUERIES = [
  { resource: 'eventsummaries', query: 'groupBy=reason' },
  { resource: 'eventsummaries', query: 'groupBy=object,type&order=count', accept: TABLE },
  // A request without options also returns the rates of controllers.
  { resource: 'eventsummaries', query: 'limit=500', accept: TABLE },
  {
    resource: 'eventsummaries',
    query: 'groupBy=controller&fieldSelector=metadata.name=e1',
    // A permission for one name is not enough: summaries also tell of other events.
    keeps: ({ name }: SeededEvent) => name === 'e1',
  },
  {
    resource: 'eventhistograms',
    query: 'by=reason&fieldSelector=since%3D2026-01-01T00:00:00Z,buckets%3D2',
  },
] as const

export function* summaries(): Generator<MatrixRequest> {
  for (const sender of SENDERS) {
    for (const place of PLACES) {
      for (const namespace of SCOPES) yield* inScope({ sender, place, namespace })
      yield users(sender, place)
    }
  }
}

function* inScope(
  from: Pick<Parameters<typeof list>[0], 'sender' | 'place' | 'namespace'>,
): Generator<MatrixRequest> {
  for (const { resource, ...wanted } of QUERIES) {
    const within = from.namespace === undefined ? '' : `/namespaces/${from.namespace}`
    const path = `${from.place.prefix}/apis/tidings.dev/v1alpha1${within}/${resource}`
    yield list({ ...from, path, ...wanted })
  }
}

/** The names of those who write need a permission of their own, which no role for events has. */
function users(sender: Sender, place: Place): MatrixRequest {
  const path = `${place.prefix}/apis/tidings.dev/v1alpha1/eventsummaries`
  const wanted = { query: 'groupBy=user', verb: 'list users', keeps: () => false }
  return list({ sender, place, namespace: undefined, path, ...wanted })
}
