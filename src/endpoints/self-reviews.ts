/**
 * Questions of callers about themselves: who am I, may I do this, what may I do. `kubectl auth whoami`
 * and `kubectl auth can-i` ask them. Nothing is stored; the answer is the question, completed.
 */
import { invalidField } from '../api/field-error.ts'
import { badRequest, invalid, methodNotAllowed, unknownPath } from '../api/status.ts'
import type { DocumentForm } from '../codec/document.ts'
import type { Attributes } from '../gate/attributes.ts'
import type { PolicyRule } from '../gate/authorization/rule-set.ts'
import type { Decision } from '../gate/gate.ts'
import type { User } from '../gate/user.ts'
import type { Request, Response } from '../http/exchange.ts'
import { isObject, type JsonObject, memberOf } from '../lib/json.ts'
import type { GroupDiscovery } from './aggregated-discovery.ts'
import { negotiateDocument } from './negotiate.ts'
import { documentResponse } from './respond.ts'
import { type ReviewKind, readSentReview } from './sent-review.ts'
import type { Service, ServiceHandler } from './services.ts'
import { warningHeader, withWarnings } from './warnings.ts'

export interface SelfReviewsOptions {
  readonly decide: (user: User, attributes: Attributes) => Promise<Decision>
  readonly rulesFor: (
    user: User,
    namespace: string,
  ) => { readonly rules: readonly PolicyRule[]; readonly isIncomplete: boolean }
  /** Milliseconds since 1970. */
  readonly wallTime: () => number
}

export const SELF_REVIEWS = 'self-reviews'

const AUTHORIZATION = 'authorization.k8s.io'
const AUTHENTICATION = 'authentication.k8s.io'
const VERSION = 'v1'

/** For discovery. */
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

/** Gives the status of a review, out of its spec. */
type Review = (spec: JsonObject, user: User) => Promise<object>

/** The reviews of both groups. Whoever may create one may ask. */
export function selfReviewsService(options: SelfReviewsOptions): Service {
  const authorization = `/apis/${AUTHORIZATION}/${VERSION}/`
  const authentication = `/apis/${AUTHENTICATION}/${VERSION}/`
  const handlers = new Map<string, ServiceHandler>([
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
    isOpenToHost: false,
    find: (path) => {
      const handler = handlers.get(path.endsWith('/') ? path.slice(0, -1) : path)
      if (handler !== undefined) return onlyPost(handler)
      return path.startsWith(authorization) || path.startsWith(authentication) ? unknown : undefined
    },
  }
}

function created(review: ReviewKind, answer: Review): ServiceHandler {
  return async (request, { user }) => {
    const form = answerForm(request)
    const { spec, warnings } = await readSentReview(request, review)
    const status = await withWarnings(
      () => warnings,
      () => answer(spec, user),
    )
    return warning(documentResponse(201, form, { ...review, metadata: {}, spec, status }), warnings)
  }
}

function warning(response: Response, texts: readonly string[]): Response {
  const header = warningHeader(texts)
  if (header === undefined) return response
  return { ...response, headers: { ...response.headers, warning: header } }
}

function accessReview({ decide }: SelfReviewsOptions): Review {
  return async (spec, user) => {
    const { verdict, reason, isUnsure } = await decide(user, askedAttributes(spec))
    return {
      allowed: verdict === 'allow',
      ...(verdict === 'deny' ? { denied: true } : {}),
      ...(reason === undefined ? {} : { reason }),
      ...(isUnsure === true ? { evaluationError: 'whoever decides could not be asked' } : {}),
    }
  }
}

function rulesReview({ rulesFor }: SelfReviewsOptions): Review {
  return async (spec, user) => {
    const namespace = textOf(spec, 'namespace')
    if (namespace === '') throw badRequest('no namespace on request')
    const { rules, isIncomplete } = rulesFor(user, namespace)
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
      ...(isIncomplete ? { evaluationError: 'a webhook decides as well, and lists no rules' } : {}),
    }
  }
}

function selfReview({ wallTime }: SelfReviewsOptions): ServiceHandler {
  const review = { apiVersion: `${AUTHENTICATION}/${VERSION}`, kind: 'SelfSubjectReview' }
  return async (request, { user }) => {
    const form = answerForm(request)
    const { warnings } = await readSentReview(request, review)
    const creationTimestamp = new Date(wallTime()).toISOString().replace(/\.\d+Z$/, 'Z')
    const { name: username, uid, groups, extra } = user
    const userInfo = {
      username,
      ...(uid === undefined || uid === '' ? {} : { uid }),
      ...(groups.length === 0 ? {} : { groups }),
      ...(extra === undefined ? {} : { extra }),
    }
    const metadata = { creationTimestamp }
    const answer = documentResponse(201, form, { ...review, metadata, status: { userInfo } })
    return warning(answer, warnings)
  }
}

/** Protobuf is read here but not written: whoever sends it takes JSON as well. */
function answerForm(request: Request): DocumentForm {
  const form = negotiateDocument(request)
  return form.mediaType === 'application/yaml' ? form : { ...form, mediaType: 'application/json' }
}

function askedAttributes(spec: JsonObject): Attributes {
  const resourceAttributes = memberOf(spec, 'resourceAttributes') ?? undefined
  const nonResource = memberOf(spec, 'nonResourceAttributes') ?? undefined
  if (isObject(resourceAttributes) && nonResource === undefined) {
    const text = (name: string): string => textOf(resourceAttributes, name)
    return {
      isResource: true,
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

/** No name of anything is nearly as long. */
const TEXT_LENGTH_MAX = 1024
/** A longer one is not even heard. */
const PATH_LENGTH_MAX = 8 * 1024

/** Empty when it is not there. */
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

const unknown: ServiceHandler = async () => {
  throw unknownPath()
}
