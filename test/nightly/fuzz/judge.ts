/** Whether a response is one that a server may send, whatever the request was. */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { parse } from 'yaml'
import { PROTOBUF } from '../../../src/codec/representation.ts'
import { protobufTree } from '../../support/protobuf-tree.ts'
import type { Answer, Ask } from './target.ts'

/** The response to a client error names the error and does not repeat the input. */
const FAILURE_BYTES_MAX = 256 * 1024
/** The maximum of all response headers that Node's own client accepts. */
const HEADERS_BYTES_MAX = 16 * 1024
/** The library that checks YAML is slow for longer texts. */
const YAML_CHECKED_MAX = 20_000

const REASONS: Readonly<Record<number, readonly string[]>> = {
  400: ['BadRequest'],
  401: ['Unauthorized'],
  403: ['Forbidden'],
  404: ['NotFound'],
  405: ['MethodNotAllowed'],
  406: ['NotAcceptable'],
  409: ['AlreadyExists', 'Conflict'],
  410: ['Expired'],
  413: ['RequestEntityTooLarge'],
  415: ['UnsupportedMediaType'],
  422: ['Invalid'],
  429: ['TooManyRequests'],
  504: ['Timeout'],
}

const SHOWN_KINDS = new Set([
  'Event',
  'EventList',
  'Table',
  'PartialObjectMetadata',
  'PartialObjectMetadataList',
  'Status',
  'APIResourceList',
])

/** What is wrong with the response; empty if nothing. */
export function wrongWith(ask: Ask, answer: Answer): readonly string[] {
  const wrong: string[] = []
  const complain = (text: string): void => void wrong.push(text)
  checkPrototypes(complain)
  checkHeaders(answer, complain)
  if (answer.status >= 500 && !mayBeLate(ask, answer)) complain(`status ${answer.status}`)
  if (answer.status < 200) complain(`status ${answer.status}`)
  if (answer.status >= 400 && answer.body.length > FAILURE_BYTES_MAX) {
    complain(`a refusal of ${answer.body.length} bytes`)
  }
  try {
    checkBody(ask, answer, complain)
  } catch (error) {
    complain(`the body is not what it says it is: ${error}`)
  }
  return wrong
}

type Complain = (text: string) => void

/** The client's timeout may pass, and a future version may never come. */
function mayBeLate({ target }: Ask, { status, body }: Answer): boolean {
  if (status !== 504) return false
  return /[?&]timeout=/.test(target) || body.includes('ResourceVersionTooLarge')
}

const clean = [Object.prototype, Array.prototype, Function.prototype, String.prototype].map(
  (prototype) => ({ prototype, size: Reflect.ownKeys(prototype).length }),
)

function checkPrototypes(complain: Complain): void {
  for (const { prototype, size } of clean) {
    if (Reflect.ownKeys(prototype).length !== size) complain('a prototype was changed')
  }
  if (Reflect.get({}, 'polluted') !== undefined) complain('Object.prototype is polluted')
}

function checkHeaders({ headers }: Answer, complain: Complain): void {
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    bytes += name.length + value.length + 4
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch (error) {
      complain(`header ${name}: ${error}`)
    }
  }
  if (bytes > HEADERS_BYTES_MAX) complain(`headers of ${bytes} bytes`)
}

function checkBody(ask: Ask, answer: Answer, complain: Complain): void {
  const type = answer.headers['content-type'] ?? ''
  if (answer.status === 204 || ask.method === 'HEAD') return
  // Too long to be parsed as a request: Node's parser responds, without a body.
  if (answer.status === 431 && answer.body.length === 0) return
  if (type.startsWith('text/plain')) {
    if (answer.status < 400) complain(`plain text with ${answer.status}`)
    return
  }
  if (type === 'application/yaml') checkYaml(answer, complain)
  else if (type === 'application/json') checkJson(answer, complain)
  else if (type === 'application/json;stream=watch') checkFrames(answer.body.toString(), complain)
  else checkProtobuf(type, answer, complain)
}

function checkYaml(answer: Answer, complain: Complain): void {
  if (answer.body.length > YAML_CHECKED_MAX) return
  checkDocument(answer, parse(answer.body.toString(), { uniqueKeys: true }), complain)
}

function checkJson(answer: Answer, complain: Complain): void {
  const text = answer.body.toString()
  if (isWatch(text)) checkFrames(text, complain)
  else checkDocument(answer, JSON.parse(text), complain)
}

function checkProtobuf(type: string, answer: Answer, complain: Complain): void {
  if (type === PROTOBUF) {
    checkDocument(answer, protobufTree(answer.body, false) as Document, complain)
  } else if (type === `${PROTOBUF};stream=watch`) protobufTree(answer.body, true)
  else complain(`content type ${type}`)
}

function isWatch(text: string): boolean {
  return text === '' || /^\{"type":"(ADDED|MODIFIED|DELETED|BOOKMARK|ERROR)"/.test(text)
}

function checkFrames(text: string, complain: Complain): void {
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const { type, object } = JSON.parse(line)
    if (!SHOWN_KINDS.has(object.kind)) complain(`frame ${type} with ${object.kind}`)
  }
}

interface Document {
  readonly kind?: unknown
  readonly apiVersion?: unknown
  readonly status?: unknown
  readonly code?: unknown
  readonly reason?: unknown
  readonly message?: unknown
}

function checkDocument({ status, body }: Answer, document: Document, complain: Complain): void {
  if (status < 400) {
    if (!SHOWN_KINDS.has(String(document.kind))) complain(`kind ${document.kind}`)
    if (typeof document.apiVersion !== 'string') complain('no apiVersion')
    return
  }
  if (document.kind !== 'Status' || document.apiVersion !== 'v1')
    complain('a failure without Status')
  if (document.status !== 'Failure') complain(`status is ${document.status}`)
  if (document.code !== status) complain(`code ${document.code} with ${status}`)
  if (typeof document.message !== 'string' || document.message === '') complain('no message')
  if (status < 500 && REASONS[status]?.includes(String(document.reason)) !== true) {
    complain(`reason ${document.reason} with ${status}: ${body.toString('utf8', 0, 300)}`)
  }
}
