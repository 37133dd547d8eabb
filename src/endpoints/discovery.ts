/**
 * What is served here, in the documents that clients read before anything else: `/`, `/api`,
 * `/apis` and what is below them down to the list of resources. kubectl and client-go ask for these
 * to find out where events are.
 */
import { methodNotAllowed, unknownPath } from '../api/status.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { type GroupDiscovery, withAggregated } from './aggregated-discovery.ts'
import { negotiateDocument } from './negotiate.ts'
import { regardedKinds } from './regarded-kinds.ts'
import { documentResponse } from './respond.ts'
import type { Service } from './services.ts'

export interface DiscoveryOptions {
  /** The API group of events. */
  readonly group: string
  /** What is served besides events. */
  readonly otherGroups?: readonly GroupDiscovery[]
  /** Paths of other services, to be listed at `/`. */
  readonly otherPaths: readonly string[]
}

const VERSION = 'v1'

/** Where the group without a name has its one version. */
const CORE_PATH = '/api/v1'

/**
 * Answers for discovery itself, and with 404 for what is below `/api` or the group and belongs to
 * no version served. What is below a version that is served is not its business.
 */
export function discoveryService(options: DiscoveryOptions): Service {
  const groups: readonly GroupDiscovery[] = [
    ...(options.otherGroups ?? []),
    { name: options.group, version: VERSION, resources: [EVENTS] },
  ]
  const list = { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(apiGroup) }
  const documents = new Map<string, Handler>([
    ['/api', onlyGet(withAggregated(answering(API_VERSIONS), [core]))],
    [CORE_PATH, onlyGet(answering(CORE_RESOURCE_LIST))],
    ['/apis', withAggregated(answering(list), groups)],
    ...groups.flatMap((group): [string, Handler][] => [
      [groupPath(group), answering({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group) })],
      [versionPath(group), onlyGet(answering(resourceList(group)))],
    ]),
  ])
  // Every request comes by here: what paths are held against is printed once.
  const corePrefix = `${CORE_PATH}/`
  const prefixes = groups.map((group) => ({
    ofGroup: `${groupPath(group)}/`,
    ofVersion: `${versionPath(group)}/`,
  }))
  const root = rootHandler([...documents.keys(), ...options.otherPaths])
  return {
    name: 'discovery',
    isOpenToHost: false,
    find: (path) => {
      if (path === '/') return root
      const document = documents.get(path.endsWith('/') ? path.slice(0, -1) : path)
      if (document !== undefined) return document
      if (path.startsWith(corePrefix)) return undefined
      if (path.startsWith('/api/')) return unknown
      const group = prefixes.find(({ ofGroup }) => path.startsWith(ofGroup))
      if (group === undefined || path.startsWith(group.ofVersion)) return undefined
      return unknown
    },
  }
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

const CORE_RESOURCES = [EVENTS, ...regardedKinds]

/** The group without a name. */
const core: GroupDiscovery = { name: '', version: VERSION, resources: CORE_RESOURCES }

/** Without an apiVersion, as the older group has always told it. */
const CORE_RESOURCE_LIST = {
  kind: 'APIResourceList',
  groupVersion: VERSION,
  resources: CORE_RESOURCES,
}

function groupPath({ name }: GroupDiscovery): string {
  return `/apis/${name}`
}

function versionPath(group: GroupDiscovery): string {
  return `${groupPath(group)}/${group.version}`
}

function apiGroup({ name, version }: GroupDiscovery): object {
  const preferredVersion = { groupVersion: `${name}/${version}`, version }
  return { name, versions: [preferredVersion], preferredVersion }
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
