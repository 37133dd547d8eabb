/** Generates requests of all users to all clusters, with what the model expects of each response. */
import {
  ACTORS,
  ALPHA,
  BRAVO,
  EVENTS,
  HOME,
  mayDo,
  NAMESPACES,
  PLACES,
  type Place,
  type SeededEvent,
  type Sender,
  USERS,
  WILDCARD,
  wireEvent,
} from './model.ts'

export interface MatrixRequest {
  readonly sender: Sender
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly expected: Expected
}

export interface Expected {
  /** Undefined: the status says nothing about permissions, as for a path that all may read. */
  readonly isAllowed: boolean | undefined
  /** The events whose content the response may have. */
  readonly events: readonly SeededEvent[]
  /** The response has the content of all of them. */
  readonly hasAll: boolean
  /** The clusters whose kinds the response may have. */
  readonly kindsOf: readonly string[]
  /** The decision of a self review. */
  readonly review?: boolean
}

/** What the generator has to learn from the server, as a user who may see everything. */
export interface Seed {
  /** The version before the first event. */
  readonly version: string
  /** The continue token of the first page, by path of the list. */
  readonly tokens: ReadonlyMap<string, string>
}

const GROUPS = [
  { root: '/apis/events.k8s.io/v1', uid: 'regarding.uid' },
  { root: '/api/v1', uid: 'involvedObject.uid' },
] as const
const META = 'v=v1;g=meta.k8s.io'
export const JSON_TYPE = 'application/json'
const FORMATS = [
  JSON_TYPE,
  'application/vnd.kubernetes.protobuf',
  'application/yaml',
  `${JSON_TYPE};as=Table;${META}`,
  `${JSON_TYPE};as=PartialObjectMetadataList;${META}`,
] as const
export const SCOPES: readonly (string | undefined)[] = [undefined, ...NAMESPACES]
export const SENDERS: readonly Sender[] = [
  ...ACTORS,
  ...[...USERS.keys()].map((user) => ({ user })),
]

export function collection(prefix: string, root: string, namespace: string | undefined): string {
  return `${prefix}${root}${namespace === undefined ? '' : `/namespaces/${namespace}`}/events`
}

/** The lists of which the first page has a continue token. */
export const PAGED_LISTS: readonly string[] = [HOME, ALPHA, BRAVO, WILDCARD].flatMap((cluster) =>
  SCOPES.map((namespace) => collection(`/clusters/${cluster}`, GROUPS[0].root, namespace)),
)

export function* lists(seed: Seed): Generator<MatrixRequest> {
  for (const { sender, place, namespace, group } of all()) {
    const path = collection(place.prefix, group.root, namespace)
    // Both groups and all senders take the same way from here on, so one of them is enough.
    const isShort = group === GROUPS[1] || sender.as !== undefined
    for (const accept of isShort ? FORMATS.slice(0, 2) : FORMATS) {
      yield list({ sender, place, namespace, path, accept })
    }
    if (isShort) continue
    for (const selection of selections(group.uid)) {
      yield list({ sender, place, namespace, path, ...selection })
    }
    const tokens = [...seed.tokens].filter(([from]) =>
      from.endsWith(collection('', group.root, namespace)),
    )
    for (const [, token] of tokens) {
      const query = `limit=2&continue=${token}`
      yield list({ sender, place, namespace, path, query, isPart: true })
    }
  }
}

/** Both the initial events and the changes since the beginning; each watch lasts a second. */
export function* watches(seed: Seed): Generator<MatrixRequest> {
  for (const { sender, place, namespace, group } of all()) {
    const path = collection(place.prefix, group.root, namespace)
    const isCore = group === GROUPS[1]
    for (const from of isCore ? [''] : ['', `&resourceVersion=${seed.version}`]) {
      const query = `watch=1&timeoutSeconds=1${from}`
      yield list({ sender, place, namespace, path, query, verb: 'watch' })
    }
    if (isCore) continue
    const query = 'watch=1&timeoutSeconds=1&fieldSelector=metadata.name=e1'
    const where = { name: 'e1', keeps: ({ name }: SeededEvent) => name === 'e1' }
    yield list({ sender, place, namespace, path, query, verb: 'watch', ...where })
  }
}

/** Dry runs, so that every request meets the same events. */
export function* objects(): Generator<MatrixRequest> {
  for (const { sender, place, namespace, group } of all()) {
    if (namespace === undefined) continue
    const path = collection(place.prefix, group.root, namespace)
    const one = (name: string): readonly SeededEvent[] =>
      eventsIn(place.cluster, namespace).filter((event) => event.name === name)
    const request = (verb: string, method: string, more: Partial<OneRequest> = {}) =>
      single({ sender, place, namespace, verb, method, path, ...more })
    const dry = '?dryRun=All'
    if (group !== GROUPS[0] || sender.as !== undefined) {
      yield request('get', 'GET', { name: 'e1', path: `${path}/e1`, events: one('e1') })
      continue
    }
    for (const name of ['e1', 'only', 'absent']) {
      const events = one(name)
      yield request('get', 'GET', { name, path: `${path}/${name}`, events })
      yield request('delete', 'DELETE', { name, path: `${path}/${name}${dry}`, events })
      const patch = { body: '{"metadata":{"annotations":{"x":"y"}}}', isPatch: true }
      yield request('patch', 'PATCH', { name, path: `${path}/${name}${dry}`, events, ...patch })
    }
    const [known = { ...NEW, namespace }] = one('e1')
    const body = JSON.stringify(wireEvent(known))
    const events = one('e1')
    yield request('update', 'PUT', { name: 'e1', path: `${path}/e1${dry}`, body, events })
    const created = JSON.stringify(wireEvent({ ...NEW, namespace }))
    yield request('create', 'POST', { path: `${path}${dry}`, body: created })
    yield request('create', 'POST', { path: `${path}${dry}`, body })
    const removed = eventsIn(place.cluster, namespace)
    yield request('deletecollection', 'DELETE', { path: path + dry, events: removed })
  }
}

const NEW: SeededEvent = { cluster: 'new', namespace: '', name: 'new', marker: 'unmarked' }

interface Combination {
  readonly sender: Sender
  readonly place: Place
  readonly namespace: string | undefined
  readonly group: (typeof GROUPS)[number]
}

function* all(): Generator<Combination> {
  for (const sender of SENDERS) {
    for (const place of PLACES) {
      for (const namespace of SCOPES) {
        for (const group of GROUPS) yield { sender, place, namespace, group }
      }
    }
  }
}

function eventsIn(cluster: string, namespace: string | undefined): readonly SeededEvent[] {
  return EVENTS.filter(
    (event) =>
      (cluster === WILDCARD || event.cluster === cluster) &&
      (namespace === undefined || event.namespace === namespace),
  )
}

interface ListRequest {
  readonly sender: Sender
  readonly place: Place
  readonly namespace: string | undefined
  readonly path: string
  readonly accept?: string
  readonly query?: string
  readonly verb?: string
  /** The name that the selector requires. */
  readonly name?: string
  readonly keeps?: (event: SeededEvent) => boolean
  /** A page, which may have any part of the events, or be refused for its token. */
  readonly isPart?: boolean
}

export function list(request: ListRequest): MatrixRequest {
  const { sender, place, namespace, path, accept = JSON_TYPE, query = '' } = request
  const { verb = 'list', name, keeps = () => true, isPart = false } = request
  const isAllowed = mayDo(sender, { cluster: place.cluster, verb, namespace, name })
  const events = isAllowed ? eventsIn(place.cluster, namespace).filter(keeps) : []
  return {
    sender,
    method: 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: { accept },
    expected: { isAllowed, events, hasAll: !isPart, kindsOf: events.map(({ cluster }) => cluster) },
  }
}

/** Some of them select by what only an event of another cluster has. */
function selections(uidField: string): readonly Partial<ListRequest>[] {
  const foreign = EVENTS.filter(
    ({ cluster, namespace, name }) => cluster !== HOME && namespace === 'shop' && name === 'e2',
  )
  return [
    {
      query: 'fieldSelector=metadata.name=e1',
      name: 'e1',
      keeps: ({ name }: SeededEvent) => name === 'e1',
    },
    {
      query: 'fieldSelector=metadata.namespace=ops',
      keeps: ({ namespace }: SeededEvent) => namespace === 'ops',
    },
    ...foreign.flatMap(({ marker }) => {
      const keeps = (event: SeededEvent): boolean => event.marker === marker
      return [
        { query: `fieldSelector=${uidField}=u-${marker}`, keeps },
        { query: `labelSelector=mark%3D${marker}`, keeps },
        { query: `fieldSelector=reason=${marker}&limit=1`, keeps },
      ]
    }),
  ]
}

interface OneRequest {
  readonly sender: Sender
  readonly place: Place
  readonly namespace: string
  readonly verb: string
  readonly method: string
  readonly path: string
  readonly name: string
  readonly body: string
  readonly isPatch: boolean
  readonly events: readonly SeededEvent[]
}

function single(request: Partial<OneRequest> & Omit<OneRequest, Optional>): MatrixRequest {
  const { sender, place, namespace, verb, method, path, name, body, events = [] } = request
  const { cluster } = place
  const isAllowed = mayDo(sender, { cluster, verb, namespace, name })
  // No single event of all clusters at once can be addressed.
  const shown = isAllowed && cluster !== WILDCARD ? events : []
  const type = request.isPatch === true ? 'application/merge-patch+json' : JSON_TYPE
  return {
    sender,
    method,
    path,
    headers: body === undefined ? {} : { 'content-type': type },
    ...(body === undefined ? {} : { body }),
    expected: {
      isAllowed,
      events: shown,
      hasAll: verb !== 'deletecollection',
      kindsOf: shown.map((event) => event.cluster),
    },
  }
}

type Optional = 'name' | 'body' | 'isPatch' | 'events'
