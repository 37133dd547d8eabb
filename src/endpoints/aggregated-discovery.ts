/**
 * Discovery in one answer: at `/api` and `/apis`, clients that know the form ask for all groups with
 * their versions and resources at once, and need not ask for each of them. They say so in Accept;
 * whoever does not gets the plain document.
 */
import { hash } from 'node:crypto'
import { documentBody } from '../codec/document.ts'
import type { Handler, Request } from '../http/exchange.ts'
import { type AcceptClause, parseAccept } from './media-type.ts'
import { wantsPretty } from './negotiate.ts'

/** A version of a group as the aggregated form has it. */
export interface GroupDiscovery {
  /** Empty for the group without a name. */
  readonly name: string
  readonly version: string
  readonly resources: readonly ResourceDiscovery[]
}

/** A resource, under the names of the plain form. */
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
 * Answers with `groups`, each in its versions, in the aggregated form to those who ask for it, else as
 * `plain` does. What is not for all must not be kept by a cache that several users share.
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
    if (!asksForAggregated(request)) return plain(request)
    if (request.headers['if-none-match'] === etag)
      return { status: 304, headers: caching, body: '' }
    const headers = { ...caching, 'content-type': CONTENT_TYPE }
    const form = { mediaType: 'application/json', isPretty: wantsPretty(request) } as const
    return { status: 200, headers, body: documentBody(form, list) }
  }
}

/** Of a group in its versions, the preferred one first. */
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
    // Group and version are left for the client to fill in from where the resource stands.
    responseKind: { group: '', version: '', kind: resource.kind },
    scope: resource.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: resource.singularName,
    verbs: resource.verbs,
    ...(resource.shortNames === undefined ? {} : { shortNames: resource.shortNames }),
  }
}

/** Whether the most wanted form that can be had is the aggregated one. */
function asksForAggregated(request: Request): boolean {
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
