/** Requests that show no events: discovery, self reviews, and paths of the server itself. */
import { JSON_TYPE, type MatrixRequest, SCOPES, SENDERS } from './matrix.ts'
import {
  ALPHA,
  BRAVO,
  EVENTS,
  HOME,
  kindGroup,
  MASTER,
  mayDo,
  PLACES,
  type Place,
  type Sender,
} from './model.ts'

/** Discovery, server paths and self reviews: everything else that a path of a cluster has. */
export function* others(): Generator<MatrixRequest> {
  for (const sender of SENDERS) {
    for (const place of PLACES) {
      yield* discovery(sender, place)
      yield* reviews(sender, place)
      yield clusterList(sender, place)
      const plain = ['/version', '/openapi/v3', '/readyz', '/', '/no/such/path']
      for (const path of plain) yield bare(sender, place.prefix + path)
      yield metrics(sender, place)
    }
  }
}

/** Kinds of events are shown to users who may list the events of all namespaces. */
function* discovery(sender: Sender, { prefix, cluster }: Place): Generator<MatrixRequest> {
  const isShown = mayDo(sender, { cluster, verb: 'list' })
  const kindsOf = isShown ? [cluster] : []
  const aggregated = `${JSON_TYPE};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`
  const named = [HOME, ALPHA, BRAVO].flatMap((name) => [
    `/apis/${kindGroup(name)}`,
    `/apis/${kindGroup(name)}/v1`,
  ])
  for (const path of ['/api', '/apis', '/api/v1', '/apis/events.k8s.io/v1', ...named]) {
    const request = bare(sender, prefix + path)
    yield { ...request, expected: { ...request.expected, kindsOf } }
    const headers = { accept: aggregated }
    if (path === '/apis') yield { ...request, headers, expected: { ...request.expected, kindsOf } }
  }
}

/** A cluster is listed for users who may list its events, also when they act as others. */
function clusterList(sender: Sender, { prefix }: Place): MatrixRequest {
  const request = bare(sender, `${prefix}/apis/tidings.dev/v1alpha1/clusters`)
  const shown = [HOME, ALPHA, BRAVO].filter((cluster) => mayDo(sender, { cluster, verb: 'list' }))
  return { ...request, expected: { ...request.expected, kindsOf: shown } }
}

function* reviews(sender: Sender, { prefix, cluster }: Place): Generator<MatrixRequest> {
  for (const verb of ['list', 'create']) {
    for (const namespace of SCOPES) {
      const resourceAttributes = { group: '', resource: 'events', verb, namespace: namespace ?? '' }
      const request = bare(
        sender,
        `${prefix}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`,
      )
      const review = mayDo(sender, { cluster, verb, namespace })
      yield {
        ...request,
        method: 'POST',
        headers: { 'content-type': JSON_TYPE },
        body: JSON.stringify({ spec: { resourceAttributes } }),
        expected: { ...request.expected, review },
      }
    }
  }
}

/** Metrics name the controllers, namespaces and reasons that write the most, to who may read them. */
function metrics(sender: Sender, { prefix }: Place): MatrixRequest {
  const request = bare(sender, `${prefix}/metrics`)
  if (sender.user !== MASTER || sender.as !== undefined || prefix !== '') return request
  return { ...request, expected: { ...request.expected, events: EVENTS, hasAll: false } }
}

/** A path that shows no events. */
function bare(sender: Sender, path: string): MatrixRequest {
  const expected = { isAllowed: undefined, events: [], hasAll: true, kindsOf: [] }
  return { sender, method: 'GET', path, headers: {}, expected }
}
