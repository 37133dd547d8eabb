/**
 * Questions of callers about themselves: who am I, may I do this, what may I do. `kubectl auth whoami`
 * and `kubectl auth can-i` ask them. Nothing is stored; the answer is the question, completed.
 */
import { invalidField } from '../api/field-error.ts'
import { badRequest, invalid, methodNotAllowed, unknownPath } from '../api/status.ts'
import type { DocumentForm } from '../codec/document.ts'
import { JsonSyntaxError, parseJson } from '../codec/json-text.ts'
import { ProtobufError } from '../codec/protobuf-struct.ts'
import { decodeReview } from '../codec/review-protobuf.ts'
import { parseYaml } from '../codec/yaml.ts'
import { YamlSyntaxError } from '../codec/yaml-nodes.ts'
import type { Attributes } from '../gate/attributes.ts'
import type { Decision } from '../gate/gate.ts'
import type { PolicyRule } from '../gate/rule-set.ts'
import type { User } from '../gate/user.ts'
import type { Request } from '../http/exchange.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../lib/json.ts'
import type { GroupDiscovery } from './aggregated-discovery.ts'
import { bodyMediaType, negotiateDocument } from './negotiate.ts'
import { documentResponse } from './respond.ts'
import { receiveBytes } from './sent-event.ts'
import type { Service, ServiceHandler } from './services.ts'

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
      created(`${AUTHORIZATION}/${VERSION}`, 'SelfSubjectAccessReview', accessReview(options)),
    ],
    [
      `${authorization}selfsubjectrulesreviews`,
      created(`${AUTHORIZATION}/${VERSION}`, 'SelfSubjectRulesReview', rulesReview(options)),
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

function created(apiVersion: string, kind: string, review: Review): ServiceHandler {
  return async (request, { user }) => {
    const form = answerForm(request)
    const spec = await readSpec(request, apiVersion, kind)
    const status = await review(spec, user)
    return documentResponse(201, form, { kind, apiVersion, metadata: {}, spec, status })
  }
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
  const apiVersion = `${AUTHENTICATION}/${VERSION}`
  const kind = 'SelfSubjectReview'
  return async (request, { user }) => {
    const form = answerForm(request)
    await readReview(request, apiVersion, kind)
    const creationTimestamp = new Date(wallTime()).toISOString().replace(/\.\d+Z$/, 'Z')
    const { name: username, uid, groups, extra } = user
    const userInfo = {
      username,
      ...(uid === undefined || uid === '' ? {} : { uid }),
      ...(groups.length === 0 ? {} : { groups }),
      ...(extra === undefined ? {} : { extra }),
    }
    const metadata = { creationTimestamp }
    return documentResponse(201, form, { kind, apiVersion, metadata, status: { userInfo } })
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

async function readSpec(request: Request, apiVersion: string, kind: string): Promise<JsonObject> {
  const spec = memberOf(await readReview(request, apiVersion, kind), 'spec') ?? {}
  if (!isObject(spec)) throw badRequest('spec: must be an object')
  return spec
}

async function readReview(request: Request, apiVersion: string, kind: string): Promise<JsonObject> {
  const tree = await readTree(request)
  if (!isObject(tree)) throw badRequest(`the body must be a ${kind}`)
  // Either may be left out: the path says the same.
  const sent = [memberOf(tree, 'apiVersion') ?? apiVersion, memberOf(tree, 'kind') ?? kind]
  if (sent[0] === apiVersion && sent[1] === kind) return tree
  throw badRequest(
    `the API version in the data (${shown(sent)}) does not match the expected API version (${apiVersion}, Kind=${kind})`,
  )
}

async function readTree(request: Request): Promise<Json> {
  const mediaType = bodyMediaType(request)
  const body = await receiveBytes(request)
  try {
    if (mediaType === 'protobuf') return decodeReview(body)
    const text = body.toString()
    return mediaType === 'json' ? parseJson(text).value : parseYaml(text).value
  } catch (error) {
    if (SYNTAX_ERRORS.some((kind) => error instanceof kind)) {
      throw badRequest(`the body cannot be read: ${(error as Error).message}`, error)
    }
    throw error
  }
}

const SYNTAX_ERRORS = [JsonSyntaxError, YamlSyntaxError, ProtobufError]

const SHOWN_MAX = 256

function shown([apiVersion, kind]: readonly Json[]): string {
  return `${String(apiVersion)}, Kind=${String(kind)}`.slice(0, SHOWN_MAX)
}

/** No name of anything is nearly as long. */
const TEXT_LENGTH_MAX = 1024
/** A longer one is not even heard. */
const PATH_LENGTH_MAX = 8 * 1024

/** Empty when it is not there. */
function textOf(part: JsonObject, name: string, lengthMax: number = TEXT_LENGTH_MAX): string {
  const value = memberOf(part, name) ?? ''
  if (typeof value !== 'string') throw badRequest(`${name}: must be a text`)
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
