/** What can be asked, as OpenAPI tells it: for each path its methods and parameters. */

/** One method on one path, in words that both versions of OpenAPI can be made from. */
export interface Operation {
  readonly path: string
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'patch'
  readonly id: string
  readonly doc: string
  /** As Kubernetes calls what it does; undefined for what is not about an object. */
  readonly action: string | undefined
  /** Of the objects it is about. */
  readonly kind: string
  readonly isDeprecated: boolean
  readonly parameters: readonly Parameter[]
  /** The schema of its body, and in which forms it may come. */
  readonly body: RequestBody | undefined
  readonly produces: readonly string[]
  /** The schema of each answer that is not a failure, by its code. */
  readonly answers: Readonly<Record<string, string>>
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

const OBJECT_FORMS = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
] as const
const STREAM_FORMS = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
] as const
const PATCH_FORMS = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
] as const
const ANY_FORM = ['*/*'] as const

const NAMESPACE: Parameter = {
  name: 'namespace',
  in: 'path',
  type: 'string',
  doc: 'The namespace of the event.',
}
const NAME: Parameter = { name: 'name', in: 'path', type: 'string', doc: 'The name of the event.' }
const PRETTY = query('pretty', 'string', 'true: indented, for people.')
const DRY_RUN = query('dryRun', 'string', 'All: try it, and store nothing.')
const LIST: readonly Parameter[] = [
  query('allowWatchBookmarks', 'boolean', 'A watch tells how far it has come, now and then.'),
  query('continue', 'string', 'From the page before: go on where it ended.'),
  query('fieldSelector', 'string', 'Only events whose fields have these values.'),
  query('labelSelector', 'string', 'Only events whose labels are like this.'),
  query('limit', 'integer', 'At most so many in one answer.'),
  query('resourceVersion', 'string', 'Which state is wanted; a watch begins after it.'),
  query('resourceVersionMatch', 'string', 'Exact, or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'A watch begins with the events that are there.'),
  query('timeoutSeconds', 'integer', 'How long it may take, whatever happens.'),
]
const WATCH = query('watch', 'boolean', 'Stay, and tell every change.')
const WRITE: readonly Parameter[] = [
  DRY_RUN,
  query('fieldManager', 'string', 'Who is writing.'),
  query('fieldValidation', 'string', 'Of unknown or repeated fields: Ignore, Warn or Strict.'),
]
const FORCE = query('force', 'boolean', 'An apply takes over fields that others manage.')
const DELETE: readonly Parameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds to end in; events need none.'),
  query(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    'boolean',
    'Delete what cannot be read. Taken, and makes no difference here.',
  ),
  query('orphanDependents', 'boolean', 'Older than propagationPolicy.'),
  query(
    'propagationPolicy',
    'string',
    'What becomes of dependents: Orphan, Background, Foreground.',
  ),
]

/** All operations of a group of events, path by path. */
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

/** All operations of a group of reviews, which can be made and nothing else. */
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
      doc: 'Asks about oneself. Nothing is stored.',
      parameters: WRITE,
      body: { schema: kind, consumes: ANY_FORM, isRequired: true },
      produces: ['application/json', 'application/yaml'],
      answers: { 200: kind, 201: kind, 202: kind },
    }),
  )
  return [...resources(base, prefix), ...reviews]
}

function basePath(group: string): string {
  return group === '' ? '/api/v1' : `/apis/${group}/v1`
}

function resources(base: string, prefix: string): readonly Operation[] {
  const answers = { 200: 'APIResourceList' }
  const id = `get${prefix}APIResources`
  const doc = 'Which resources there are.'
  return [operation({ path: `${base}/`, method: 'get', id, doc, answers, parameters: [] })]
}

function collections(base: string, prefix: string): readonly Operation[] {
  const path = `${base}/namespaces/{namespace}/events`
  const list = { method: 'get', action: 'list', answers: { 200: 'EventList' } } as const
  const produces = [...OBJECT_FORMS, ...STREAM_FORMS]
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
      body: { schema: 'Event', consumes: ANY_FORM, isRequired: true },
      answers: { 200: 'Event', 201: 'Event', 202: 'Event' },
    }),
    operation({
      path,
      method: 'delete',
      action: 'deletecollection',
      id: `delete${prefix}CollectionNamespacedEvent`,
      doc: 'Deletes the events of a namespace, or those that selectors name.',
      parameters: [NAMESPACE, ...LIST, ...DELETE],
      body: { schema: 'DeleteOptions', consumes: ANY_FORM, isRequired: false },
      answers: { 200: 'Status' },
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
      answers: { 200: 'Event' },
    }),
    operation({
      path,
      method: 'put',
      action: 'put',
      id: `replace${prefix}NamespacedEvent`,
      doc: 'Replaces an event, or creates it.',
      parameters: [...own, ...WRITE],
      body: { schema: 'Event', consumes: ANY_FORM, isRequired: true },
      answers: written,
    }),
    operation({
      path,
      method: 'patch',
      action: 'patch',
      id: `patch${prefix}NamespacedEvent`,
      doc: 'Changes or applies parts of an event.',
      parameters: [...own, ...WRITE, FORCE],
      body: { schema: 'Patch', consumes: PATCH_FORMS, isRequired: true },
      answers: written,
    }),
    operation({
      path,
      method: 'delete',
      action: 'delete',
      id: `delete${prefix}NamespacedEvent`,
      doc: 'Deletes an event.',
      parameters: [...own, ...DELETE],
      body: { schema: 'DeleteOptions', consumes: ANY_FORM, isRequired: false },
      answers: { 200: 'Status', 202: 'Status' },
    }),
  ]
}

function watches(base: string, prefix: string): readonly Operation[] {
  const shared = {
    method: 'get',
    answers: { 200: 'WatchEvent' },
    produces: [...OBJECT_FORMS, ...STREAM_FORMS],
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

/** Adds what most operations have in common. */
function operation(
  own: Pick<Operation, 'path' | 'method' | 'id' | 'doc' | 'parameters' | 'answers'> &
    Partial<Operation>,
): Operation {
  const parameters = own.action === undefined ? own.parameters : [...own.parameters, PRETTY]
  return {
    action: undefined,
    kind: 'Event',
    isDeprecated: false,
    body: undefined,
    produces: OBJECT_FORMS,
    ...own,
    parameters,
  }
}

/** `EventsV1` for events.k8s.io, as in the names that generated clients give to their functions. */
function idPrefix(group: string): string {
  if (group === '') return 'CoreV1'
  const words = group.replace(/\.k8s\.io$/, '').split(/[^a-z0-9]+/i)
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}V1`
}

function query(name: string, type: Parameter['type'], doc: string): Parameter {
  return { name, in: 'query', type, doc }
}
