/** The operations in the OpenAPI documents: the methods and parameters of each path. */

/** One method on one path, independent of the OpenAPI version. */
export interface Operation {
  readonly path: string
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'patch'
  readonly id: string
  readonly doc: string
  /** The name that Kubernetes gives the action. Undefined for operations without an object. */
  readonly action: string | undefined
  /** The kind of its objects. */
  readonly kind: string
  readonly isDeprecated: boolean
  readonly parameters: readonly Parameter[]
  readonly body: RequestBody | undefined
  readonly produces: readonly string[]
  /** The schema of each successful response, keyed by status code. */
  readonly responses: Readonly<Record<string, string>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly type: 'string' | 'integer' | 'boolean'
  readonly doc: string
}

export interface RequestBody {
  readonly schema: string
  readonly consumes: readonly string[]
  readonly isRequired: boolean
}

const OBJECT_MEDIA_TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
] as const
const STREAM_MEDIA_TYPES = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
] as const
const PATCH_MEDIA_TYPES = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
] as const
const ANY_MEDIA_TYPE = ['*/*'] as const

const NAMESPACE: Parameter = {
  name: 'namespace',
  in: 'path',
  type: 'string',
  doc: 'The namespace of the events.',
}
const NAME: Parameter = {
  name: 'name',
  in: 'path',
  type: 'string',
  doc: 'The name of the object.',
}
const PRETTY = query('pretty', 'string', 'With true, the response is indented.')
const DRY_RUN = query('dryRun', 'string', 'With All, the request is checked but nothing is stored.')
const LIST: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'A watch sends bookmarks with its progress.'),
  query('continue', 'string', 'Token of the previous page, to continue after it.'),
  query(
    'fieldSelector',
    'string',
    'Only events with these field values: type=Warning,reason=BackOff|Failed*,since=1h.',
  ),
  query('labelSelector', 'string', 'Only events whose labels match.'),
  query('limit', 'integer', 'Maximum number of events in the response.'),
  query('order', 'string', 'By when events were last seen: oldest or newest. Default: by key.'),
  query('resourceVersion', 'string', 'Version of the requested state. A watch starts after it.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion applies: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'A watch starts with the existing events.'),
  query(
    'shardSelector',
    'string',
    'Only events whose hash is in a range, such as ' +
      "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000').",
  ),
  query('timeoutSeconds', 'integer', 'Time limit of the request in seconds.'),
]
const WATCH: Parameter = query('watch', 'boolean', 'Keep the response open and send every change.')
const WRITE: readonly Parameter[] = [
  DRY_RUN,
  query('fieldManager', 'string', 'Name of the client that makes the change.'),
  query('fieldValidation', 'string', 'Unknown or repeated fields: Ignore, Warn or Strict.'),
]
const FORCE = query('force', 'boolean', 'An apply takes over fields of other managers.')
const DELETE: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Grace period in seconds. Events do not need one.'),
  query(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    'boolean',
    'Delete an event that cannot be read, and only such an event.',
  ),
  query('orphanDependents', 'boolean', 'Deprecated: use propagationPolicy.'),
  query('propagationPolicy', 'string', 'Handling of dependents: Orphan, Background or Foreground.'),
]

/** All operations of a group of events. */
export function eventOperations(group: string): readonly Operation[] {
  const base = basePath(group)
  const prefix = idPrefix(group)
  return [
    ...resources(base, prefix),
    ...collections(base, prefix),
    ...oneEvent(base, prefix),
    ...watches(base, prefix),
  ]
}

/** All operations of a group of reviews, which can only be created. */
export function reviewOperations(group: string, kinds: readonly string[]): readonly Operation[] {
  const base = basePath(group)
  const prefix = idPrefix(group)
  const reviews = kinds.map((kind) =>
    operation({
      path: `${base}/${kind.toLowerCase()}s`,
      method: 'post',
      action: 'post',
      kind,
      id: `create${prefix}${kind}`,
      doc: 'Reviews the caller. Nothing is stored.',
      parameters: WRITE,
      body: { schema: kind, consumes: ANY_MEDIA_TYPE, isRequired: true },
      produces: ['application/json', 'application/yaml'],
      responses: { 200: kind, 201: kind, 202: kind },
    }),
  )
  return [...resources(base, prefix), ...reviews]
}

export function groupOperations(group: string, version: string): readonly Operation[] {
  return resources(basePath(group, version), idPrefix(group, version))
}

/** The operations of one read-only kind without namespaces. */
export function readOperations(group: string, version: string, kind: string): readonly Operation[] {
  const path = `${basePath(group, version)}/${kind.toLowerCase()}s`
  const prefix = idPrefix(group, version)
  return [
    operation({
      path,
      method: 'get',
      action: 'list',
      kind,
      id: `list${prefix}${kind}`,
      doc: `Lists or watches objects of kind ${kind}.`,
      parameters: [...LIST, WATCH],
      produces: [...OBJECT_MEDIA_TYPES, ...STREAM_MEDIA_TYPES],
      responses: { 200: `${kind}List` },
    }),
    operation({
      path: `${path}/{name}`,
      method: 'get',
      action: 'get',
      kind,
      id: `read${prefix}${kind}`,
      doc: `Reads an object of kind ${kind}.`,
      parameters: [NAME],
      responses: { 200: kind },
    }),
  ]
}

/** The options of a list of objects that are computed for it, which has no pages. */
const COMPUTED_LIST: readonly Parameter[] = LIST.filter(({ name }) =>
  ['fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'resourceVersionMatch'].includes(
    name,
  ),
)

export interface ListOnlyKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly resource: string
  /** Options in addition to those of every list. */
  readonly options?: readonly Parameter[]
}

/** The operations of one namespaced kind whose objects are computed on each list. */
export function listOnlyOperations({
  group,
  version,
  kind,
  resource,
  options = [],
}: ListOnlyKind): readonly Operation[] {
  const base = basePath(group, version)
  const prefix = idPrefix(group, version)
  const parameters = [...COMPUTED_LIST, ...options]
  const list = {
    method: 'get',
    action: 'list',
    kind,
    produces: OBJECT_MEDIA_TYPES,
    responses: { 200: `${kind}List` },
  } as const
  return [
    operation({
      ...list,
      path: `${base}/${resource}`,
      id: `list${prefix}${kind}ForAllNamespaces`,
      doc: `Lists objects of kind ${kind} for all namespaces.`,
      parameters,
    }),
    operation({
      ...list,
      path: `${base}/namespaces/{namespace}/${resource}`,
      id: `list${prefix}Namespaced${kind}`,
      doc: `Lists objects of kind ${kind} for a namespace.`,
      parameters: [NAMESPACE, ...parameters],
    }),
  ]
}

function basePath(group: string, version = 'v1'): string {
  return group === '' ? '/api/v1' : `/apis/${group}/${version}`
}

function resources(base: string, prefix: string): readonly Operation[] {
  const responses = { 200: 'APIResourceList' }
  const id = `get${prefix}APIResources`
  const doc = 'Lists the resources of the group.'
  return [operation({ path: `${base}/`, method: 'get', id, doc, responses, parameters: [] })]
}

function collections(base: string, prefix: string): readonly Operation[] {
  const path = `${base}/namespaces/{namespace}/events`
  const list = { method: 'get', action: 'list', responses: { 200: 'EventList' } } as const
  const produces = [...OBJECT_MEDIA_TYPES, ...STREAM_MEDIA_TYPES]
  return [
    operation({
      ...list,
      path: `${base}/events`,
      id: `list${prefix}EventForAllNamespaces`,
      doc: 'Lists or watches the events of all namespaces.',
      parameters: [...LIST, WATCH],
      produces,
    }),
    operation({
      ...list,
      path,
      id: `list${prefix}NamespacedEvent`,
      doc: 'Lists or watches the events of a namespace.',
      parameters: [NAMESPACE, ...LIST, WATCH],
      produces,
    }),
    operation({
      path,
      method: 'post',
      action: 'post',
      id: `create${prefix}NamespacedEvent`,
      doc: 'Creates an event.',
      parameters: [NAMESPACE, ...WRITE],
      body: { schema: 'Event', consumes: ANY_MEDIA_TYPE, isRequired: true },
      responses: { 200: 'Event', 201: 'Event', 202: 'Event' },
    }),
    operation({
      path,
      method: 'delete',
      action: 'deletecollection',
      id: `delete${prefix}CollectionNamespacedEvent`,
      doc: 'Deletes the events of a namespace, or those that match the selectors.',
      parameters: [NAMESPACE, ...LIST, ...DELETE],
      body: { schema: 'DeleteOptions', consumes: ANY_MEDIA_TYPE, isRequired: false },
      responses: { 200: 'Status' },
    }),
  ]
}

function oneEvent(base: string, prefix: string): readonly Operation[] {
  const path = `${base}/namespaces/{namespace}/events/{name}`
  const own = [NAME, NAMESPACE]
  const written = { 200: 'Event', 201: 'Event' }
  return [
    operation({
      path,
      method: 'get',
      action: 'get',
      id: `read${prefix}NamespacedEvent`,
      doc: 'Reads an event.',
      parameters: own,
      responses: { 200: 'Event' },
    }),
    operation({
      path,
      method: 'put',
      action: 'put',
      id: `replace${prefix}NamespacedEvent`,
      doc: 'Replaces an event, or creates it.',
      parameters: [...own, ...WRITE],
      body: { schema: 'Event', consumes: ANY_MEDIA_TYPE, isRequired: true },
      responses: written,
    }),
    operation({
      path,
      method: 'patch',
      action: 'patch',
      id: `patch${prefix}NamespacedEvent`,
      doc: 'Patches or applies fields of an event.',
      parameters: [...own, ...WRITE, FORCE],
      body: { schema: 'Patch', consumes: PATCH_MEDIA_TYPES, isRequired: true },
      responses: written,
    }),
    operation({
      path,
      method: 'delete',
      action: 'delete',
      id: `delete${prefix}NamespacedEvent`,
      doc: 'Deletes an event.',
      parameters: [...own, ...DELETE],
      body: { schema: 'DeleteOptions', consumes: ANY_MEDIA_TYPE, isRequired: false },
      responses: { 200: 'Status', 202: 'Status' },
    }),
  ]
}

function watches(base: string, prefix: string): readonly Operation[] {
  const shared = {
    method: 'get',
    responses: { 200: 'WatchEvent' },
    produces: [...OBJECT_MEDIA_TYPES, ...STREAM_MEDIA_TYPES],
    isDeprecated: true,
  } as const
  const parameters = [...LIST, WATCH]
  return [
    operation({
      ...shared,
      path: `${base}/watch/events`,
      action: 'watchlist',
      id: `watch${prefix}EventListForAllNamespaces`,
      doc: 'Watches the events of all namespaces. Use the parameter watch of a list instead.',
      parameters,
    }),
    operation({
      ...shared,
      path: `${base}/watch/namespaces/{namespace}/events`,
      action: 'watchlist',
      id: `watch${prefix}NamespacedEventList`,
      doc: 'Watches the events of a namespace. Use the parameter watch of a list instead.',
      parameters: [NAMESPACE, ...parameters],
    }),
    operation({
      ...shared,
      path: `${base}/watch/namespaces/{namespace}/events/{name}`,
      action: 'watch',
      id: `watch${prefix}NamespacedEvent`,
      doc: 'Watches one event. Use a list with watch and a fieldSelector instead.',
      parameters: [NAME, NAMESPACE, ...parameters],
    }),
  ]
}

/** Adds the defaults of most operations. */
function operation(
  own: Pick<Operation, 'path' | 'method' | 'id' | 'doc' | 'parameters' | 'responses'> &
    Partial<Operation>,
): Operation {
  const parameters = own.action === undefined ? own.parameters : [...own.parameters, PRETTY]
  return {
    action: undefined,
    kind: 'Event',
    isDeprecated: false,
    body: undefined,
    produces: OBJECT_MEDIA_TYPES,
    ...own,
    parameters,
  }
}

/** Returns `EventsV1` for events.k8s.io, as in the function names of generated clients. */
function idPrefix(group: string, version = 'v1'): string {
  if (group === '') return 'CoreV1'
  const words = group.replace(/\.k8s\.io$/, '').split(/[^a-z0-9]+/i)
  return [...words, version].map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

export function query(name: string, type: Parameter['type'], doc: string): Parameter {
  return { name, in: 'query', type, doc }
}
