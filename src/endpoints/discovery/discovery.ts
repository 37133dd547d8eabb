/**
 * API discovery: the documents at `/`, `/api` and `/apis`, down to the lists of resources. kubectl
 * and client-go read these first, to find the paths of events.
 */
import { methodNotAllowed } from '../../api/status.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import type { Attributes } from '../../gate/attributes.ts'
import type { Decision } from '../../gate/decisions.ts'
import type { Caller } from '../../gate/gate.ts'
import type { Target } from '../../gate/target.ts'
import type { User } from '../../gate/user.ts'
import type { Handler, Request, Response } from '../../http/exchange.ts'
import type { RegardedKind } from '../../storage/event-fields.ts'
import { negotiateDocument } from '../request/negotiate.ts'
import { documentResponse, pageNotFound, unknownPathHandler } from '../response/respond.ts'
import type { Service, ServiceHandler } from '../services.ts'
import {
  type GroupDiscovery,
  type ResourceDiscovery,
  withAggregated,
} from './aggregated-discovery.ts'
import { regardedKinds, withRegarded } from './discovery-only-kinds.ts'

export interface DiscoveryOptions {
  /** The API group of events. */
  readonly group: string
  /** Groups that are served besides that of events. */
  readonly otherGroups?: readonly GroupDiscovery[]
  /** Paths of all services, listed at `/`. */
  readonly paths: () => readonly string[]
  /** Returns the kinds that stored events of a cluster regard: the same array until they change. */
  readonly regarded?: ((cluster: string) => readonly RegardedKind[]) | undefined
  readonly decide?:
    | ((user: User, attributes: Attributes) => Promise<Decision | undefined>)
    | undefined
}

const VERSION = 'v1'

/** The path of the only version of the core group. */
const CORE_PATH = '/api/v1'

/** Keyed by path. */
type Documents = ReadonlyMap<string, Handler>

/**
 * Serves the discovery documents, and a 404 for paths below `/api` or a group that no served
 * version has. Paths below a served version belong to other services.
 *
 * Kinds that are known only from stored events are shown only to users who may list the events of
 * all namespaces: other users must not learn what runs in a namespace.
 */
export function discoveryService(options: DiscoveryOptions): Service {
  const groups: readonly GroupDiscovery[] = [
    ...(options.otherGroups ?? []),
    { name: options.group, version: VERSION, resources: [EVENTS] },
  ]
  const documents = documentsOf(
    core,
    groups.map((group) => [group]),
  )
  const privileged = documentsWithRegarded(options, groups)
  // Every request is compared with these prefixes, so they are built once.
  const corePrefix = `${CORE_PATH}/`
  const prefixes = groups.map((group) => ({
    ofGroup: `${groupPath(group)}/`,
    ofVersion: `${versionPath(group)}/`,
  }))
  const root = rootHandler(options.paths)
  const found = (path: string, cluster: string): ServiceHandler => {
    return async (request, caller) => {
      const handler = (await privileged({ path, cluster }, caller)) ?? documents.get(path)
      return handler === undefined ? pageNotFound() : handler(request)
    }
  }
  const mayBeRegarded = (path: string): boolean =>
    options.regarded !== undefined && GROUP_OR_VERSION.test(path)
  const below = (path: string, plain: string, cluster: string): ServiceHandler | undefined => {
    if (path.startsWith(corePrefix)) return undefined
    if (path.startsWith('/api/')) return unknownPathHandler
    const group = prefixes.find(({ ofGroup }) => path.startsWith(ofGroup))
    if (group === undefined) return mayBeRegarded(plain) ? found(plain, cluster) : undefined
    return path.startsWith(group.ofVersion) ? undefined : unknownPathHandler
  }
  return {
    name: 'discovery',
    paths: [...documents.keys()],
    isOpenToHost: false,
    find: ({ path, cluster }) => {
      if (path === '/') return root
      const plain = path.endsWith('/') ? path.slice(0, -1) : path
      return documents.has(plain) ? found(plain, cluster) : below(path, plain, cluster)
    },
  }
}

const GROUP_OR_VERSION = /^\/apis\/[^/]+(?:\/[^/]+)?$/

/**
 * Finds the document at a path for users who may see all kinds; undefined for other users, or when
 * there is none. Checks the permission only for paths that exist, since any client may request
 * others.
 */
function documentsWithRegarded(
  { group, regarded, decide }: DiscoveryOptions,
  groups: readonly GroupDiscovery[],
): (
  target: Pick<Target, 'path' | 'cluster'>,
  caller: Caller,
) => Promise<Handler | undefined> | undefined {
  const listing = { ...LIST_EVENTS, group, path: `/apis/${group}/${VERSION}/events` }
  /** Keyed by the list of kinds of a cluster, which is the same array until it changes. */
  const known = new WeakMap<readonly RegardedKind[], Documents>()
  return ({ path, cluster }, { user }) => {
    const kinds = regarded?.(cluster) ?? []
    if (kinds.length === 0) return undefined
    let documents = known.get(kinds)
    if (documents === undefined) {
      const { inCore, inGroups } = withRegarded(core, groups, kinds)
      documents = documentsOf(inCore, inGroups, false)
      known.set(kinds, documents)
    }
    const handler = documents.get(path)
    if (handler === undefined) return undefined
    return (async () => {
      const decision = await decide?.(user, { ...listing, cluster })
      return decision?.verdict === 'allow' ? handler : undefined
    })()
  }
}

const LIST_EVENTS = {
  isResource: true,
  verb: 'list',
  version: VERSION,
  resource: 'events',
  subresource: '',
  namespace: '',
  name: '',
} as const

/** Each group has its versions, the preferred one first. */
function documentsOf(
  inCore: GroupDiscovery,
  groups: readonly (readonly GroupDiscovery[])[],
  isForAll = true,
): Documents {
  const list = { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(apiGroup) }
  // Has no apiVersion, as in Kubernetes.
  const coreList = { kind: 'APIResourceList', groupVersion: VERSION, resources: inCore.resources }
  return new Map<string, Handler>([
    ['/api', onlyGet(withAggregated(serving(API_VERSIONS), [[inCore]], isForAll))],
    [CORE_PATH, onlyGet(serving(coreList))],
    ['/apis', withAggregated(serving(list), groups, isForAll)],
    ...groups.flatMap((versions): [string, Handler][] => [
      [pathOf(versions), serving({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(versions) })],
      ...versions.map((group): [string, Handler] => [
        versionPath(group),
        onlyGet(serving(resourceList(group))),
      ]),
    ]),
  ])
}

/** The list of addresses is empty, since the server does not know how clients reach it. */
const API_VERSIONS = { kind: 'APIVersions', versions: [VERSION], serverAddressByClientCIDRs: [] }

const EVENTS = {
  name: 'events',
  singularName: 'event',
  namespaced: true,
  kind: 'Event',
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  shortNames: ['ev'],
  // Changes when stored objects must be rewritten; the same value as in Kubernetes.
  storageVersionHash: 'r2yiGXH7wu8=',
}

const READ = ['get', 'list', 'watch']

/** The namespaces that have events. */
const NAMESPACES = {
  name: 'namespaces',
  singularName: 'namespace',
  namespaced: false,
  kind: 'Namespace',
  verbs: READ,
  shortNames: ['ns'],
}

const core: GroupDiscovery = {
  name: '',
  version: VERSION,
  resources: [EVENTS, NAMESPACES, ...regardedKinds],
}

/** The group of the objects that only this server has. */
export const tidingsGroup: GroupDiscovery = {
  name: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  resources: [
    { name: 'clusters', singularName: 'cluster', namespaced: false, kind: 'Cluster', verbs: READ },
    listOnly('EventHistogram', 'eventhistograms', 'evhist'),
    listOnly('EventSummary', 'eventsummaries', 'evsum'),
    listOnly('RetentionWindow', 'retentionwindows', 'rwin'),
  ],
}

/** A namespaced resource whose objects are computed on each list. */
function listOnly(kind: string, name: string, shortName: string): ResourceDiscovery {
  return {
    name,
    singularName: kind.toLowerCase(),
    namespaced: true,
    kind,
    verbs: ['list'],
    shortNames: [shortName],
  }
}

function groupPath({ name }: GroupDiscovery): string {
  return `/apis/${name}`
}

function versionPath(group: GroupDiscovery): string {
  return `${groupPath(group)}/${group.version}`
}

function pathOf(versions: readonly GroupDiscovery[]): string {
  return `/apis/${versions[0]?.name ?? ''}`
}

function apiGroup(versions: readonly GroupDiscovery[]): object {
  const entries = versions.map(({ name, version }) => ({
    groupVersion: `${name}/${version}`,
    version,
  }))
  return { name: versions[0]?.name ?? '', versions: entries, preferredVersion: entries[0] }
}

function resourceList({ name, version, resources }: GroupDiscovery): object {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: `${name}/${version}`,
    resources,
  }
}

/** Always indented, since people read it. */
function rootHandler(paths: () => readonly string[]): Handler {
  return async () => json(JSON.stringify({ paths: paths() }, undefined, 2))
}

/** Serves a document for every method, as Kubernetes does for `/apis` and for a group. */
function serving(document: object): Handler {
  return async (request) => documentResponse(200, negotiateDocument(request), document)
}

function onlyGet(handler: Handler): Handler {
  return async (request: Request) => {
    if (request.method !== 'GET') throw methodNotAllowed()
    return handler(request)
  }
}

function json(body: string): Response {
  return { status: 200, headers: { 'content-type': 'application/json' }, body }
}
