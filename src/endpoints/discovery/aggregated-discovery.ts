/**
 * Aggregated discovery: at `/api` and `/apis`, clients that support it get all groups with their
 * versions and resources in one response instead of many. They request it in Accept; other clients
 * get the plain document.
 */
import { hash } from 'node:crypto'
import { documentBody } from '../../codec/document.ts'
import type { Handler, Request } from '../../http/exchange.ts'
import { type AcceptClause, parseAccept } from '../request/media-type.ts'
import { wantsPretty } from '../request/negotiate.ts'

/** One version of a group. */
export interface GroupDiscovery {
  /** Empty for the group without a name. */
  readonly name: string
  readonly version: string
  readonly resources: readonly ResourceDiscovery[]
}

/** A resource, with the field names of plain discovery. */
export interface ResourceDiscovery {
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly kind: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
}

const GROUP = 'apidiscovery.k8s.io'
const VERSION = 'v2'
const KIND = 'APIGroupDiscoveryList'
const CONTENT_TYPE = `application/json;g=${GROUP};v=${VERSION};as=${KIND}`

/**
 * Responds with `groups`, each with its versions, if the client requests aggregated discovery;
 * otherwise as `plain` does. A response that is not the same for all users (`isForAll` is false)
 * must not be stored in a shared cache.
 */
export function withAggregated(
  plain: Handler,
  groups: readonly (readonly GroupDiscovery[])[],
  isForAll = true,
): Handler {
  const list = {
    kind: KIND,
    apiVersion: `${GROUP}/${VERSION}`,
    metadata: {},
    items: groups.map(groupItem),
  }
  const etag = `"${hash('sha512', JSON.stringify(list), 'hex').toUpperCase()}"`
  const caching = { etag, vary: 'Accept', 'cache-control': isForAll ? 'public' : 'private' }
  return async (request) => {
    if (!wantsAggregated(request)) return plain(request)
    if (request.headers['if-none-match'] === etag)
      return { status: 304, headers: caching, body: '' }
    const headers = { ...caching, 'content-type': CONTENT_TYPE }
    const form = { mediaType: 'application/json', isPretty: wantsPretty(request) } as const
    return { status: 200, headers, body: documentBody(form, list) }
  }
}

/** The preferred version of a group comes first. */
function groupItem(versions: readonly GroupDiscovery[]): object {
  const name = versions[0]?.name ?? ''
  return {
    metadata: name === '' ? {} : { name },
    versions: versions.map(({ version, resources }) => ({
      version,
      resources: resources.map(resourceItem),
      freshness: 'Current',
    })),
  }
}

function resourceItem(resource: ResourceDiscovery): object {
  return {
    resource: resource.name,
    // Empty, since clients take group and version from the enclosing entry.
    responseKind: { group: '', version: '', kind: resource.kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singularName,
    verbs: resource.verbs,
    ...(resource.shortNames === undefined ? {} : { shortNames: resource.shortNames }),
  }
}

/** Returns whether the most preferred supported format is the aggregated one. */
function wantsAggregated(request: Request): boolean {
  const { accept } = request.headers
  if (accept?.includes(KIND) !== true) return false
  const best = parseAccept(accept).find((clause) => isAggregated(clause) || isPlain(clause))
  return best !== undefined && isAggregated(best)
}

function isAggregated(clause: AcceptClause): boolean {
  return (
    clause.subtype !== 'yaml' &&
    isOffered(clause) &&
    parameter(clause, 'g') === GROUP &&
    parameter(clause, 'v') === VERSION &&
    parameter(clause, 'as') === KIND
  )
}

function isPlain(clause: AcceptClause): boolean {
  return (
    isOffered(clause) && !['g', 'v', 'as'].some((name) => parameter(clause, name) !== undefined)
  )
}

function isOffered({ type, subtype }: AcceptClause): boolean {
  return /^(application\/(json|yaml|\*)|\*\/\*)$/.test(`${type}/${subtype}`)
}

function parameter(clause: AcceptClause, name: string): string | undefined {
  return clause.parameters.find((one) => one.name === name)?.value
}
