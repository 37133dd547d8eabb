/**
 * The target of a request, parsed once from its method, path and query. The gate authorises it, the
 * limits and the audit log read it, and the endpoint executes it: a second parser that differed
 * from this one would be a way around permissions.
 */
import { queryBoolean } from '../api/query-boolean.ts'
import {
  anyFieldNames,
  coreFieldNames,
  eventFieldNames,
  eventOptionNames,
  type FieldNames,
  type FieldRequirement,
  histogramOptionNames,
  nameFieldOnly,
  type OptionName,
  parseSelector,
  type QueryOption,
  requiredValue,
  summaryOptionNames,
} from '../api/selectors/field-selector.ts'
import { TIDINGS_GROUP } from '../api/tidings-group.ts'
import { isDnsLabel } from '../api/validation/names.ts'
import type { Request } from '../http/exchange.ts'
import { ownText } from '../lib/text/own-text.ts'
import {
  ALL_CLUSTERS,
  type Attributes,
  type PathAttributes,
  type ResourceAttributes,
} from './attributes.ts'

export type Target = ResourceTarget | PathTarget

export interface PathTarget extends PathAttributes {
  readonly isPrefixed: boolean
  readonly query: URLSearchParams
}

/** The `name` of a list or watch is the one that the field selector requires, if any. */
export interface ResourceTarget extends ResourceAttributes {
  readonly isPrefixed: boolean
  readonly query: URLSearchParams
  /** Whether the path is under `.../watch/`, which is a watch whatever the query says. */
  readonly isWatchPath: boolean
  /** Whether the query has `watch=true`. */
  readonly wantsWatch: boolean
  /** Undefined when the path has empty, missing or surplus parts. */
  readonly place: Place | undefined
  /** The requirements of the field selector, or the error for the response if it is malformed. */
  readonly fields: readonly FieldRequirement[] | Error
  /** Query options that were sent in the field selector. */
  readonly options: readonly QueryOption[]
}

/** All objects of a resource, those of one namespace, or one object, in a namespace or in none. */
export type Place =
  | { readonly kind: 'everything' }
  | { readonly kind: 'collection'; readonly namespace: string }
  | { readonly kind: 'object'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'unnamespaced'; readonly name: string }

/** Names have at most 253 characters. A much longer part matches nothing and is not echoed. */
const PART_LENGTH_MAX = 1024

/** Verbs for a path with a name, keyed by method. */
const OBJECT_VERBS: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
])

/** Verbs on many objects. They take a field selector. */
export const COLLECTION_VERBS: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

const NO_FIELDS: Pick<ResourceTarget, 'fields' | 'options'> = { fields: [], options: [] }

/** Paths that do not name a cluster belong to `defaultCluster`. */
export function readTarget(
  request: Pick<Request, 'method' | 'path' | 'query'>,
  defaultCluster: string,
): Target {
  const { method, query } = request
  const { path, cluster, isPrefixed } = readCluster(request.path, defaultCluster)
  const inPath = readPath(path)
  if (inPath === undefined) {
    return { isResource: false, cluster, isPrefixed, verb: method.toLowerCase(), path, query }
  }
  const { group, name: nameInPath, isWatchPath } = inPath
  const wantsWatch = queryBoolean(query, 'watch') === true
  const verb = isWatchPath ? 'watch' : verbOf(method, nameInPath !== '', wantsWatch)
  const { fields, options } = COLLECTION_VERBS.has(verb) ? readFields(query, inPath) : NO_FIELDS
  // A watch path is authorised for all objects, whatever its selector requires. So is a summary,
  // which also reveals events that are not selected.
  const isSelection =
    nameInPath === '' &&
    !isWatchPath &&
    (verb === 'list' || verb === 'watch') &&
    !OPTION_NAMES.has(`${inPath.resource}.${group}`)
  return {
    isResource: true,
    cluster,
    isPrefixed,
    verb,
    group,
    version: inPath.version,
    resource: inPath.resource,
    subresource: inPath.subresource,
    namespace: inPath.namespace,
    name: isSelection ? requiredName(fields) : nameInPath,
    path,
    query,
    isWatchPath,
    wantsWatch,
    place: inPath.place,
    fields,
    options,
  }
}

type InPath = Pick<
  ResourceTarget,
  'group' | 'version' | 'resource' | 'subresource' | 'namespace' | 'name' | 'isWatchPath' | 'place'
>

const CLUSTERS = '/clusters/'

/**
 * Splits `/clusters/<name>/rest` into the cluster and `/rest`. A path with a name that no cluster
 * can have belongs to the default cluster, where nothing is served under it.
 */
function readCluster(
  path: string,
  defaultCluster: string,
): { readonly cluster: string; readonly path: string; readonly isPrefixed: boolean } {
  if (path.startsWith(CLUSTERS)) {
    const slash = path.indexOf('/', CLUSTERS.length)
    const end = slash === -1 ? path.length : slash
    const cluster = path.slice(CLUSTERS.length, end)
    if (cluster === ALL_CLUSTERS || isDnsLabel(cluster)) {
      // Copied, since a slice would retain the whole path for as long as a watch lasts.
      return { cluster: ownText(cluster), path: ownText(path.slice(end)) || '/', isPrefixed: true }
    }
  }
  return { cluster: defaultCluster, path, isPrefixed: false }
}

/** Returns undefined for a path that is not a resource. */
function readPath(path: string): InPath | undefined {
  const parts = partsOf(path)
  const isCore = parts[0] === 'api'
  const first = isCore ? 2 : 3
  if ((!isCore && parts[0] !== 'apis') || parts.length <= first) return undefined
  const isWatchPath = parts[first] === 'watch'
  const at = isWatchPath ? first + 1 : first
  const isNamespaced = parts[at] === 'namespaces'
  const namespace = isNamespaced ? partAt(parts, at + 1) : ''
  // `namespaces/x` alone addresses the namespace itself.
  const isInNamespace = isNamespaced && parts.length > at + 2
  const object = parts.slice(isInNamespace ? at + 2 : at)
  const isPlain = hasPlainSlashes(path)
  return {
    group: isCore ? '' : partAt(parts, 1),
    version: partAt(parts, first - 1),
    resource: partAt(object, 0),
    subresource: partAt(object, 2),
    namespace,
    name: partAt(object, 1),
    isWatchPath,
    place: isPlain ? placeOf(object, isInNamespace ? namespace : undefined) : undefined,
  }
}

/** Drops the query and the selectors. A watch retains only the attributes. */
export function attributesOf(target: Target): Attributes {
  const { cluster, isPrefixed, verb, path } = target
  if (!target.isResource) return { isResource: false, cluster, isPrefixed, verb, path }
  const { group, version, resource, subresource, namespace, name } = target
  return {
    isResource: true,
    cluster,
    isPrefixed,
    verb,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    path,
  }
}

/** Strips the slashes at both ends. A regular expression would be slow for a path of slashes. */
function partsOf(path: string): string[] {
  let from = 0
  let to = path.length
  while (from < to && path[from] === '/') from++
  while (to > from && path[to - 1] === '/') to--
  return path.slice(from, to).split('/')
}

function partAt(parts: readonly string[], at: number): string {
  return parts[at] ?? ''
}

/** Returns whether there is one slash in front, and at most one at the end. */
function hasPlainSlashes(path: string): boolean {
  return !path.startsWith('//') && !path.endsWith('//')
}

/** `parts` begins with the resource. */
function placeOf(parts: readonly string[], namespace: string | undefined): Place | undefined {
  const [, name] = parts
  if (namespace === undefined) {
    if (parts.length === 1) return { kind: 'everything' }
    return parts.length === 2 && isName(name) ? { kind: 'unnamespaced', name } : undefined
  }
  if (!isName(namespace)) return undefined
  if (parts.length === 1) return { kind: 'collection', namespace }
  if (parts.length > 2 || !isName(name)) return undefined
  return { kind: 'object', namespace, name }
}

function isName(part: string | undefined): part is string {
  return part !== undefined && part !== '' && part.length <= PART_LENGTH_MAX
}

function verbOf(method: string, isNamed: boolean, wantsWatch: boolean): string {
  const verb = OBJECT_VERBS.get(method) ?? ''
  if (isNamed) return verb
  if (verb === 'delete') return 'deletecollection'
  if (verb !== 'get') return verb
  return wantsWatch ? 'watch' : 'list'
}

function readFields(
  query: URLSearchParams,
  { group, resource }: Pick<InPath, 'group' | 'resource'>,
): Pick<ResourceTarget, 'fields' | 'options'> {
  const selector = query.get('fieldSelector')
  if (selector === null || selector === '') return NO_FIELDS
  try {
    const optionNames = resource === 'events' ? eventOptionNames : optionsOf(group, resource)
    return parseSelector(selector, fieldNamesOf(group, resource), optionNames)
  } catch (error) {
    if (error instanceof Error) return { fields: error, options: [] }
    throw error
  }
}

function optionsOf(group: string, resource: string): readonly OptionName[] {
  return OPTION_NAMES.get(`${resource}.${group}`) ?? []
}

/** Options that are field labels, keyed by resource. */
const OPTION_NAMES: ReadonlyMap<string, readonly OptionName[]> = new Map([
  [`eventsummaries.${TIDINGS_GROUP}`, summaryOptionNames],
  [`eventhistograms.${TIDINGS_GROUP}`, histogramOptionNames],
])

/** Resources that are selected by name only. */
const NAME_ONLY: ReadonlySet<string> = new Set(['namespaces', 'clusters', 'retentionwindows'])

function fieldNamesOf(group: string, resource: string): FieldNames {
  if (NAME_ONLY.has(resource)) return nameFieldOnly
  // Summaries count events, and accept the field labels of both event APIs.
  if (group === TIDINGS_GROUP) return anyFieldNames
  return group === '' ? coreFieldNames : eventFieldNames
}

/** A list or watch of one object by its name is authorised for that object alone. */
function requiredName(fields: ResourceTarget['fields']): string {
  if (fields instanceof Error) return ''
  const name = requiredValue(fields, 'metadata.name') ?? ''
  // No object has such a name.
  return name === '.' || name === '..' || /[/%]/.test(name) ? '' : name
}
