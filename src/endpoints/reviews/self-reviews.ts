/**
 * Self reviews: who is the caller, may the caller do this, what may the caller do. `kubectl auth
 * whoami` and `kubectl auth can-i` send them. Nothing is stored; the response is the request with a
 * status.
 */
import { clusterAnnotation } from '../../api/annotations.ts'
import { badRequest, invalid, methodNotAllowed } from '../../api/status.ts'
import { invalidField } from '../../api/validation/field-error.ts'
import type { DocumentFormat } from '../../codec/document.ts'
import type { Attributes } from '../../gate/attributes.ts'
import type { PolicyRule } from '../../gate/authorization/rule-set.ts'
import type { Decision } from '../../gate/decisions.ts'
import type { User } from '../../gate/user.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { isObject, type JsonObject, memberOf } from '../../lib/json.ts'
import type { GroupDiscovery } from '../discovery/aggregated-discovery.ts'
import { negotiateDocument } from '../request/negotiate.ts'
import { documentResponse, unknownPathHandler } from '../response/respond.ts'
import { warningHeader, withWarnings } from '../response/warnings.ts'
import type { Service, ServiceHandler } from '../services.ts'
import { type ReviewKind, readSentReview } from './review-body.ts'

export interface SelfReviewsOptions {
  readonly decide: (user: User, attributes: Attributes) => Promise<Decision>
  readonly rulesFor: (
    user: User,
    scope: { readonly cluster: string; readonly namespace: string },
  ) => { readonly rules: readonly PolicyRule[]; readonly isIncomplete: boolean }
  /** Milliseconds since 1970. */
  readonly wallTime: () => number
}

export const SELF_REVIEWS = 'self-reviews'

const AUTHORIZATION = 'authorization.k8s.io'
const AUTHENTICATION = 'authentication.k8s.io'
const VERSION = 'v1'

export const selfReviewGroups: readonly GroupDiscovery[] = [
  { name: AUTHENTICATION, version: VERSION, resources: [resource('SelfSubjectReview')] },
  {
    name: AUTHORIZATION,
    version: VERSION,
    resources: [resource('SelfSubjectAccessReview'), resource('SelfSubjectRulesReview')],
  },
]

function resource(kind: string): GroupDiscovery['resources'][number] {
  const singularName = kind.toLowerCase()
  return { name: `${singularName}s`, singularName, namespaced: false, kind, verbs: ['create'] }
}

/** Computes the status of a review from its spec, for the cluster of the request's path. */
type Review = (spec: JsonObject, user: User, cluster: string) => Promise<object>

/** Serves the reviews of both groups. Callers need the permission to create them. */
export function selfReviewsService(options: SelfReviewsOptions): Service {
  const authorization = `/apis/${AUTHORIZATION}/${VERSION}/`
  const authentication = `/apis/${AUTHENTICATION}/${VERSION}/`
  const handlers = new Map<string, ReviewHandler>([
    [
      `${authorization}selfsubjectaccessreviews`,
      created(
        { apiVersion: `${AUTHORIZATION}/${VERSION}`, kind: 'SelfSubjectAccessReview' },
        accessReview(options),
      ),
    ],
    [
      `${authorization}selfsubjectrulesreviews`,
      created(
        { apiVersion: `${AUTHORIZATION}/${VERSION}`, kind: 'SelfSubjectRulesReview' },
        rulesReview(options),
      ),
    ],
    [`${authentication}selfsubjectreviews`, selfReview(options)],
  ])
  return {
    name: SELF_REVIEWS,
    paths: [],
    isOpenToHost: false,
    find: ({ path, cluster }) => {
      const handler = handlers.get(path.endsWith('/') ? path.slice(0, -1) : path)
      if (handler !== undefined) return onlyPost(handler(cluster))
      const isReview = path.startsWith(authorization) || path.startsWith(authentication)
      return isReview ? unknownPathHandler : undefined
    },
  }
}

type ReviewHandler = (cluster: string) => ServiceHandler

function created(kind: ReviewKind, review: Review): ReviewHandler {
  return (cluster) =>
    async (request, { user }) => {
      const form = responseForm(request)
      const { spec, warnings } = await readSentReview(request, kind)
      const status = await withWarnings(
        () => warnings,
        () => review(spec, user, cluster),
      )
      return warning(documentResponse(201, form, { ...kind, metadata: {}, spec, status }), warnings)
    }
}

function warning(response: Response, texts: readonly string[]): Response {
  const header = warningHeader(texts)
  if (header === undefined) return response
  return { ...response, headers: { ...response.headers, warning: header } }
}

const WEBHOOK_FAILED = 'the authorization webhook could not be reached'
const WEBHOOK_RULES_UNKNOWN =
  'an authorization webhook decides as well, and its rules cannot be listed'
const ORIGIN_FAILED = 'the API server of the cluster could not be reached'
const ORIGIN_RULES_UNKNOWN =
  'the API server of the cluster decides, and its rules cannot be listed here'

function accessReview({ decide }: SelfReviewsOptions): Review {
  return async (spec, user, cluster) => {
    const { verdict, reason, isUnsure } = await decide(user, attributesOf(spec, cluster))
    return {
      allowed: verdict === 'allow',
      ...(verdict === 'deny' && isUnsure !== true ? { denied: true } : {}),
      ...(reason === undefined ? {} : { reason }),
      ...(isUnsure === true
        ? { evaluationError: user.origin === undefined ? WEBHOOK_FAILED : ORIGIN_FAILED }
        : {}),
    }
  }
}

function rulesReview({ rulesFor }: SelfReviewsOptions): Review {
  return async (spec, user, cluster) => {
    const namespace = textOf(spec, 'namespace')
    if (namespace === '') throw badRequest('no namespace on request')
    const { rules, isIncomplete } = rulesFor(user, { cluster, namespace })
    return {
      resourceRules: rules
        .filter(({ resources }) => resources.length > 0)
        .map(({ verbs, apiGroups, resources, resourceNames }) => ({
          verbs,
          apiGroups,
          resources,
          ...(resourceNames.length === 0 ? {} : { resourceNames }),
        })),
      nonResourceRules: rules
        .filter(({ nonResourceUrls }) => nonResourceUrls.length > 0)
        .map(({ verbs, nonResourceUrls }) => ({ verbs, nonResourceURLs: nonResourceUrls })),
      incomplete: isIncomplete,
      ...(isIncomplete
        ? {
            evaluationError:
              user.origin === undefined ? WEBHOOK_RULES_UNKNOWN : ORIGIN_RULES_UNKNOWN,
          }
        : {}),
    }
  }
}

function selfReview({ wallTime }: SelfReviewsOptions): ReviewHandler {
  const review = { apiVersion: `${AUTHENTICATION}/${VERSION}`, kind: 'SelfSubjectReview' }
  return () =>
    async (request, { user }) => {
      const form = responseForm(request)
      const { warnings } = await readSentReview(request, review)
      const creationTimestamp = new Date(wallTime()).toISOString().replace(/\.\d+Z$/, 'Z')
      const { name: username, uid, groups } = user
      const extra = extraOf(user)
      const userInfo = {
        username,
        ...(uid === undefined || uid === '' ? {} : { uid }),
        ...(groups.length === 0 ? {} : { groups }),
        ...(extra === undefined ? {} : { extra }),
      }
      const metadata = { creationTimestamp }
      const response = documentResponse(201, form, { ...review, metadata, status: { userInfo } })
      return warning(response, warnings)
    }
}

/** Protobuf is decoded here but not encoded, since clients that send it accept JSON as well. */
function responseForm(request: Request): DocumentFormat {
  const form = negotiateDocument(request)
  return form.mediaType === 'application/yaml' ? form : { ...form, mediaType: 'application/json' }
}

function attributesOf(spec: JsonObject, cluster: string): Attributes {
  const resourceAttributes = memberOf(spec, 'resourceAttributes') ?? undefined
  const nonResource = memberOf(spec, 'nonResourceAttributes') ?? undefined
  if (isObject(resourceAttributes) && nonResource === undefined) {
    const text = (name: string): string => textOf(resourceAttributes, name)
    return {
      isResource: true,
      cluster,
      verb: text('verb'),
      group: text('group'),
      version: text('version'),
      resource: text('resource'),
      subresource: text('subresource'),
      namespace: text('namespace'),
      name: text('name'),
      path: '',
    }
  }
  if (isObject(nonResource) && resourceAttributes === undefined) {
    return {
      isResource: false,
      cluster,
      verb: textOf(nonResource, 'verb'),
      path: textOf(nonResource, 'path', PATH_LENGTH_MAX),
    }
  }
  throw invalid({ kind: 'SelfSubjectAccessReview', group: AUTHORIZATION, name: '' }, [
    invalidField(
      'spec.resourceAttributes',
      'null',
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ),
  ])
}

/** Far longer than any name. */
const TEXT_LENGTH_MAX = 1024
/** A request with a longer path is refused by the HTTP server. */
const PATH_LENGTH_MAX = 8 * 1024

/** Returns '' if it was not sent. */
function textOf(part: JsonObject, name: string, lengthMax: number = TEXT_LENGTH_MAX): string {
  const value = String(memberOf(part, name) ?? '')
  if (value.length > lengthMax)
    throw badRequest(`${name}: must have at most ${lengthMax} characters`)
  return value
}

function onlyPost(handler: ServiceHandler): ServiceHandler {
  return async (request, caller) => {
    if (request.method !== 'POST') throw methodNotAllowed()
    return handler(request, caller)
  }
}

/** Tells clients of a cluster that their credentials are valid in that cluster only. */
function extraOf({ extra, origin }: User): User['extra'] {
  return origin === undefined ? extra : { ...extra, [clusterAnnotation]: [origin] }
}
