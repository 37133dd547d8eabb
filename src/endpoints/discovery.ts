/**
 * What is served here, in the documents that clients read before anything else: `/`, `/api`,
 * `/apis` and what is below them down to the list of resources. kubectl and client-go ask for these
 * to find out where events are.
 */
import { methodNotAllowed, unknownPath } from '../api/status.ts'
import type { Attributes } from '../gate/attributes.ts'
import type { Caller, Decision } from '../gate/gate.ts'
import type { User } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import type { RegardedKind } from '../storage/storage.ts'
import { type GroupDiscovery, withAggregated } from './aggregated-discovery.ts'
import { negotiateDocument } from './negotiate.ts'
import { regardedKinds, withRegarded } from './regarded-kinds.ts'
import { documentResponse, pageNotFound } from './respond.ts'
import type { Service, ServiceHandler } from './services.ts'

export interface DiscoveryOptions {
  /** The API group of events. */
  readonly group: string
  /** What is served besides events. */
  readonly otherGroups?: readonly GroupDiscovery[]
  /** Paths of other services, to be listed at `/`. */
  readonly otherPaths: readonly string[]
  /** Kinds that events are about besides those everybody knows; the same list until it changes. */
  readonly regarded?: (() => readonly RegardedKind[]) | undefined
  /** Whether a user may do this. */
  readonly decide?:
    | ((user: User, attributes: Attributes) => Promise<Decision | undefined>)
    | undefined
}

const VERSION = 'v1'

/** Where the group without a name has its one version. */
const CORE_PATH = '/api/v1'

/** Documents by their path. */
type Documents = ReadonlyMap<string, Handler>

/**
 * Answers for discovery itself, and with 404 for what is below `/api` or the group and belongs to
 * no version served. What is below a version that is served is not its business.
 *
 * Kinds that only events tell of are shown to those who may list the events of all namespaces, and to
 * nobody else: what runs in a namespace is not for everybody to know.
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
  const more = documentsWithRegarded(options, groups)
  // Every request comes by here: what paths are held against is printed once.
  const corePrefix = `${CORE_PATH}/`
  const prefixes = groups.map((group) => ({
    ofGroup: `${groupPath(group)}/`,
    ofVersion: `${versionPath(group)}/`,
  }))
  const root = rootHandler([...documents.keys(), ...options.otherPaths])
  const found = (path: string): ServiceHandler => {
    return async (request, caller) => {
      const handler = (await more(path, caller)) ?? documents.get(path)
      return handler === undefined ? pageNotFound() : handler(request)
    }
  }
  const mayBeRegarded = (path: string): boolean =>
    options.regarded !== undefined && GROUP_OR_VERSION.test(path)
  const below = (path: string, plain: string): ServiceHandler | undefined => {
    if (path.startsWith(corePrefix)) return undefined
    if (path.startsWith('/api/')) return unknown
    const group = prefixes.find(({ ofGroup }) => path.startsWith(ofGroup))
    if (group === undefined) return mayBeRegarded(plain) ? found(plain) : undefined
    return path.startsWith(group.ofVersion) ? undefined : unknown
  }
  return {
    name: 'discovery',
    isOpenToHost: false,
    find: (path) => {
      if (path === '/') return root
      const plain = path.endsWith('/') ? path.slice(0, -1) : path
      return documents.has(plain) ? found(plain) : below(path, plain)
    },
  }
}

const GROUP_OR_VERSION = /^\/apis\/[^/]+(?:\/[^/]+)?$/

/**
 * The document at a path for callers who may know of all kinds; undefined for others, or when there is
 * none. Whether they may is asked only where there is one: anybody may ask for paths that do not exist.
 */
function documentsWithRegarded(
  { group, regarded, decide }: DiscoveryOptions,
  groups: readonly GroupDiscovery[],
): (path: string, caller: Caller) => Promise<Handler | undefined> | undefined {
  const attributes = { ...LIST_EVENTS, group, path: `/apis/${group}/${VERSION}/events` }
  let listed: readonly RegardedKind[] = []
  let documents: Documents | undefined
  const ifPermitted = async (handler: Handler, user: User): Promise<Handler | undefined> =>
    (await decide?.(user, attributes))?.verdict === 'allow' ? handler : undefined
  return (path, { user }) => {
    const kinds = regarded?.() ?? []
    if (kinds.length === 0) return undefined
    if (kinds !== listed || documents === undefined) {
      const { inCore, inGroups } = withRegarded(core, groups, kinds)
      listed = kinds
      documents = documentsOf(inCore, inGroups, false)
    }
    const handler = documents.get(path)
    return handler && ifPermitted(handler, user)
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

/** `groups`: each in its versions, the preferred one first. */
function documentsOf(
  inCore: GroupDiscovery,
  groups: readonly (readonly GroupDiscovery[])[],
  isForAll = true,
): Documents {
  const list = { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(apiGroup) }
  // Without an apiVersion, as the older group has always told it.
  const coreList = { kind: 'APIResourceList', groupVersion: VERSION, resources: inCore.resources }
  return new Map<string, Handler>([
    ['/api', onlyGet(withAggregated(answering(API_VERSIONS), [[inCore]], isForAll))],
    [CORE_PATH, onlyGet(answering(coreList))],
    ['/apis', withAggregated(answering(list), groups, isForAll)],
    ...groups.flatMap((versions): [string, Handler][] => [
      [pathOf(versions), answering({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(versions) })],
      ...versions.map((group): [string, Handler] => [
        versionPath(group),
        onlyGet(answering(resourceList(group))),
      ]),
    ]),
  ])
}

/** Under which address clients come is not for us to know, so no address is named. */
const API_VERSIONS = { kind: 'APIVersions', versions: [VERSION], serverAddressByClientCIDRs: [] }

const EVENTS = {
  name: 'events',
  singularName: 'event',
  namespaced: true,
  kind: 'Event',
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  shortNames: ['ev'],
  // Changes when stored objects must be rewritten; Kubernetes' value for events, so ours too.
  storageVersionHash: 'r2yiGXH7wu8=',
}

/** The group without a name. */
const core: GroupDiscovery = { name: '', version: VERSION, resources: [EVENTS, ...regardedKinds] }

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
  const told = versions.map(({ name, version }) => ({
    groupVersion: `${name}/${version}`,
    version,
  }))
  return { name: versions[0]?.name ?? '', versions: told, preferredVersion: told[0] }
}

function resourceList({ name, version, resources }: GroupDiscovery): object {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: `${name}/${version}`,
    resources,
  }
}

/** Read by people, so always indented. */
function rootHandler(paths: readonly string[]): Handler {
  const body = JSON.stringify({ paths: [...paths].sort() }, undefined, 2)
  return async () => json(body)
}

/** The list of groups and the group itself answer to every method, as clients may be used to. */
function answering(document: object): Handler {
  return async (request) => documentResponse(200, negotiateDocument(request), document)
}

function onlyGet(handler: Handler): Handler {
  return async (request: Request) => {
    if (request.method !== 'GET') throw methodNotAllowed()
    return handler(request)
  }
}

const unknown: Handler = async () => {
  throw unknownPath()
}

function json(body: string): Response {
  return { status: 200, headers: { 'content-type': 'application/json' }, body }
}
