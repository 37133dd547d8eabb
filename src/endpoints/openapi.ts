/**
 * What an event looks like and what can be asked about it, for programs: `/openapi/v2` in one
 * document, `/openapi/v3` as an index of one for each group. kubectl reads it to explain fields, to
 * know whether a server checks what it is sent, and how to merge.
 */
import { hash } from 'node:crypto'
import { methodNotAllowed, unknownPath } from '../api/status.ts'
import { openApiV2, openApiV3 } from '../codec/openapi.ts'
import type { OpenApiGroup } from '../codec/openapi-groups.ts'
import { openApiV2Protobuf } from '../codec/openapi-v2-protobuf.ts'
import { openApiV3Protobuf } from '../codec/openapi-v3-protobuf.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import type { JsonObject } from '../lib/json.ts'
import { type AcceptClause, parseAccept } from './media-type.ts'
import type { Service } from './services.ts'

export interface OpenApiOptions {
  /** Those that are served. */
  readonly groups: readonly OpenApiGroup[]
  /** The version of the API's behaviour, as `/version` has it. */
  readonly release: string
}

/** A document in one of its forms. */
interface Form {
  readonly contentType: string
  /** Further names under which clients know the form. */
  readonly aliases: readonly string[]
  readonly body: string | Buffer
}

const INDEX_PATH = '/openapi/v3'
const V2_PATH = '/openapi/v2'
const YEAR_MS = 365 * 24 * 60 * 60 * 1000

export const openApiPaths: readonly string[] = [V2_PATH, INDEX_PATH]

/** Everything under `/openapi`. The documents are made once, now. */
export function openApiService({ groups, release }: OpenApiOptions): Service {
  const index: JsonObject = {}
  const documents = new Map<string, Handler>()
  for (const group of groups) {
    const place = group.name === '' ? 'api/v1' : `apis/${group.name}/v1`
    const document = openApiV3(group, release)
    const json = jsonForm(document)
    // One hash for both forms: it says which document this is, not how it is written.
    const digest = digestOf(json)
    const path = `${INDEX_PATH}/${place}`
    const forms = answering([json, protobufForm('v3', openApiV3Protobuf(document))])
    documents.set(path, forEverIfNamed(forms, digest))
    index[place] = { serverRelativeURL: `${path}?hash=${digest}` }
  }
  documents.set(INDEX_PATH, answering([jsonForm({ paths: index })], theFirst))
  const whole = openApiV2(groups, release)
  documents.set(V2_PATH, answering([jsonForm(whole), protobufForm('v2', openApiV2Protobuf(whole))]))
  return {
    name: 'openapi',
    isOpenToHost: false,
    find: (path) => {
      const document = documents.get(path.endsWith('/') ? path.slice(0, -1) : path)
      return document ?? (path.startsWith(`${INDEX_PATH}/`) ? unknown : undefined)
    },
  }
}

function jsonForm(document: JsonObject): Form {
  return { contentType: 'application/json', aliases: [], body: JSON.stringify(document) }
}

function protobufForm(version: 'v2' | 'v3', body: Buffer): Form {
  return {
    contentType: `application/com.github.proto-openapi.spec.${version}.v1.0+protobuf`,
    aliases: [`application/com.github.proto-openapi.spec.${version}@v1.0+protobuf`],
    body,
  }
}

function digestOf({ body }: Form): string {
  return hash('sha512', body, 'hex').toUpperCase()
}

/** Answers with the most wanted of the forms, the first of which is for who has no wishes. */
function answering(forms: readonly [Form, ...Form[]], choose = wantedOf): Handler {
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

/** For the index, which is JSON for everybody: wishes are about the documents that it names. */
const theFirst: typeof wantedOf = ([form]) => form

function wantedOf(forms: readonly [Form, ...Form[]], request: Request): Form | undefined {
  const { accept } = request.headers
  if (accept === undefined || accept === '') return forms[0]
  for (const clause of parseAccept(accept)) {
    const wanted = forms.find((form) => isIn(form, clause))
    if (wanted !== undefined) return wanted
  }
  return undefined
}

function isIn({ contentType, aliases }: Form, { type, subtype }: AcceptClause): boolean {
  if (subtype === '*') return type === '*' || contentType.startsWith(`${type}/`)
  return [contentType, ...aliases].includes(`${type}/${subtype}`)
}

/**
 * Under its hash a document never changes, so who names the right one may keep it for good. With a
 * wrong one, which is what a client has from before an update, the answer is the document as it is:
 * to be redirected is nothing that a client behind an aggregator may follow.
 */
function forEverIfNamed(handler: Handler, digest: string): Handler {
  return async (request) => {
    const response = await handler(request)
    if (request.query.get('hash') !== digest || response.status === 406) return response
    return kept(response)
  }
}

function kept(response: Response): Response {
  return {
    ...response,
    headers: {
      ...response.headers,
      'cache-control': 'public, immutable',
      expires: new Date(Date.now() + YEAR_MS).toUTCString(),
    },
  }
}

const unknown: Handler = async () => {
  throw unknownPath()
}
