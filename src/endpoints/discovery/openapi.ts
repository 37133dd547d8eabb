/**
 * OpenAPI: `/openapi/v2` is one document, `/openapi/v3` an index with one document per group.
 * kubectl reads them to explain fields, to find out whether the server validates fields, and to
 * learn how lists merge.
 */
import { hash } from 'node:crypto'
import { methodNotAllowed } from '../../api/status.ts'
import { openApiV2, openApiV3 } from '../../codec/openapi/openapi.ts'
import type { OpenApiGroup } from '../../codec/openapi/openapi-groups.ts'
import { openApiV2Protobuf } from '../../codec/openapi/openapi-v2-protobuf.ts'
import type { Handler, Request, Response } from '../../http/exchange.ts'
import type { JsonObject } from '../../lib/json.ts'
import { type AcceptClause, parseAccept } from '../request/media-type.ts'
import { unknownPathHandler } from '../response/respond.ts'
import type { Service } from '../services.ts'

export interface OpenApiOptions {
  readonly groups: readonly OpenApiGroup[]
  /** The version of Kubernetes whose behaviour is served, as in `/version`. */
  readonly release: string
}

/** A document in one of its formats. */
interface Form {
  readonly contentType: string
  /** Other media types under which clients request it. */
  readonly aliases: readonly string[]
  readonly body: string | Buffer
}

const INDEX_PATH = '/openapi/v3'
const V2_PATH = '/openapi/v2'
const YEAR_MS = 365 * 24 * 60 * 60 * 1000

const openApiPaths: readonly string[] = [V2_PATH, INDEX_PATH]

/** Serves everything under `/openapi`. The documents are built once, here. */
export function openApiService({ groups, release }: OpenApiOptions): Service {
  const index: JsonObject = {}
  const documents = new Map<string, Handler>()
  for (const group of groups) {
    const place = group.name === '' ? 'api/v1' : `apis/${group.name}/${group.version}`
    const document = openApiV3(group, release)
    const json = jsonForm(document)
    const digest = digestOf(json)
    const path = `${INDEX_PATH}/${place}`
    documents.set(path, immutableByHash(serving([json]), digest))
    index[place] = { serverRelativeURL: `${path}?hash=${digest}` }
  }
  documents.set(INDEX_PATH, serving([jsonForm({ paths: index })], firstForm))
  const whole = openApiV2(groups, release)
  documents.set(V2_PATH, serving([jsonForm(whole), v2ProtobufForm(openApiV2Protobuf(whole))]))
  return {
    name: 'openapi',
    paths: openApiPaths,
    isOpenToHost: false,
    find: ({ path }) => {
      const document = documents.get(path.endsWith('/') ? path.slice(0, -1) : path)
      return document ?? (path.startsWith(`${INDEX_PATH}/`) ? unknownPathHandler : undefined)
    },
  }
}

function jsonForm(document: JsonObject): Form {
  return { contentType: 'application/json', aliases: [], body: JSON.stringify(document) }
}

function v2ProtobufForm(body: Buffer): Form {
  return {
    contentType: 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
    aliases: ['application/com.github.proto-openapi.spec.v2@v1.0+protobuf'],
    body,
  }
}

function digestOf({ body }: Form): string {
  return hash('sha512', body, 'hex').toUpperCase()
}

/** Responds in the most preferred format, or in the first one without a preference. */
function serving(forms: readonly [Form, ...Form[]], choose = preferredForm): Handler {
  const tagged = forms.map((form) => ({ form, etag: `"${digestOf(form)}"` }))
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    const chosen = tagged.find(({ form }) => form === choose(forms, request))
    if (chosen === undefined) return { status: 406, headers: {}, body: '' }
    const { form, etag } = chosen
    const headers = { etag, vary: 'Accept' }
    if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' }
    return {
      status: 200,
      headers: { ...headers, 'content-type': form.contentType },
      body: form.body,
    }
  }
}

/** Chooses JSON for the index, since clients send the Accept of the documents that it lists. */
const firstForm: typeof preferredForm = ([form]) => form

function preferredForm(forms: readonly [Form, ...Form[]], request: Request): Form | undefined {
  const { accept } = request.headers
  if (accept === undefined || accept === '') return forms[0]
  for (const clause of parseAccept(accept)) {
    const preferred = forms.find((form) => isIn(form, clause))
    if (preferred !== undefined) return preferred
  }
  return undefined
}

function isIn({ contentType, aliases }: Form, { type, subtype }: AcceptClause): boolean {
  if (subtype === '*') return type === '*' || contentType.startsWith(`${type}/`)
  return [contentType, ...aliases].includes(`${type}/${subtype}`)
}

/**
 * A request with the current hash may be cached for good, since the document of a hash never
 * changes. A client with an outdated hash, from before an update, gets the current document and not
 * a redirect, which a client behind an aggregator could not follow.
 */
function immutableByHash(handler: Handler, digest: string): Handler {
  return async (request) => {
    const response = await handler(request)
    if (request.query.get('hash') !== digest || response.status === 406) return response
    return cachedForAYear(response)
  }
}

function cachedForAYear(response: Response): Response {
  return {
    ...response,
    headers: {
      ...response.headers,
      'cache-control': 'public, immutable',
      expires: new Date(Date.now() + YEAR_MS).toUTCString(),
    },
  }
}
