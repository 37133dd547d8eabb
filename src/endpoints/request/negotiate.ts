/**
 * Negotiates the formats of responses and request bodies, before anything is read or written, so
 * that a 406 changes nothing.
 *
 * There are two steps, each with its own error message. The first one examines the bare types of
 * the Accept header, the second one its clauses with their parameters, best first.
 */
import { badRequest, StatusError } from '../../api/status.ts'
import type { DocumentFormat } from '../../codec/document.ts'
import {
  type IncludeObject,
  type MetaVersion,
  PROTOBUF,
  type Representation,
} from '../../codec/representation.ts'
import type { Request } from '../../http/exchange.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { type AcceptClause, parseAccept, parseContentType } from './media-type.ts'

/** Sorted by preference. A range gets the first type that it covers. */
const offered = ['application/json', 'application/yaml', PROTOBUF] as const
const objectTypes: readonly string[] = offered
const streamTypes = ['application/json;stream=watch', `${PROTOBUF};stream=watch`]
const listTypes = [...objectTypes, ...streamTypes]

/** Negotiates a response with one event. */
export function negotiateObject(request: Request): Representation {
  const chosen = negotiate(request, objectTypes)
  if (chosen.conversion?.kind === 'PartialObjectMetadataList') throw notAList()
  return representation(request, chosen)
}

/** Negotiates a response with a list of events. */
export function negotiateList(request: Request): Representation {
  const chosen = negotiate(request, listTypes)
  if (chosen.conversion?.kind === 'PartialObjectMetadata') {
    throw notAcceptable('you requested PartialObjectMetadata, but the requested object is a list')
  }
  return representation(request, chosen)
}

/** Negotiates a watch: one JSON object per line, never indented, or protobuf. */
export function negotiateWatch(request: Request): Representation {
  const chosen = negotiate(request, listTypes)
  if (chosen.mediaType === 'application/yaml') throw notAccepted(streamTypes)
  if (chosen.conversion?.kind === 'PartialObjectMetadataList') throw notAList()
  return { ...representation(request, chosen), isPretty: false }
}

/** Negotiates a Status, or another document that is not an event. These are never converted. */
export function negotiateDocument(request: Request): DocumentFormat {
  const { mediaType, isPretty } = negotiate(request, objectTypes)
  return { mediaType, isPretty: isPretty || wantsPretty(request) }
}

/** Negotiates an error response. Never fails: if no format is acceptable, it is indented JSON. */
export function errorForm(request: Request): DocumentFormat {
  const { accept } = request.headers
  const chosen = isAnything(accept) ? plainJson : choose(parseAccept(accept))
  if (chosen === undefined) return { mediaType: 'application/json', isPretty: true }
  return { mediaType: chosen.mediaType, isPretty: chosen.isPretty || wantsPretty(request) }
}

export type BodyMediaType = 'json' | 'yaml' | 'protobuf'

/** Returns the format of a body that is not a patch. */
export function bodyMediaType(request: Request): BodyMediaType {
  const header = request.headers['content-type']
  if (header === undefined || header === '' || header === 'application/json') return 'json'
  switch (parseContentType(header)) {
    case 'application/json':
      return 'json'
    case 'application/yaml':
      return 'yaml'
    case PROTOBUF:
      return 'protobuf'
    default:
      throw new StatusError(
        'UnsupportedMediaType',
        `the body of the request was in an unknown format - accepted media types include: ${objectTypes.join(', ')}`,
      )
  }
}

export type PatchFormat = (typeof patchFormats)[keyof typeof patchFormats]

const patchFormats = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
} as const

/** Returns the kind of patch in a body. Checked before the format of the response. */
export function patchFormat(request: Request): PatchFormat {
  const type = parseContentType(request.headers['content-type'] ?? '') ?? ''
  if (Object.hasOwn(patchFormats, type)) return patchFormats[type as keyof typeof patchFormats]
  throw new StatusError('UnsupportedMediaType', '415: Unsupported Media Type', { details: {} })
}

/**
 * True for `?pretty=true`, and without that parameter for clients that show responses to people.
 */
export function wantsPretty(request: Request): boolean {
  const sent = request.query.get('pretty') ?? ''
  if (sent !== '') return /^(1|t|true)$/i.test(sent)
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers['user-agent'] ?? '')
}

/** A format that a clause requests and this server supports. */
interface Chosen {
  readonly mediaType: Representation['mediaType']
  readonly conversion: Conversion | undefined
  readonly isPretty: boolean
}

interface Conversion {
  readonly kind: ConversionKind
  readonly version: MetaVersion
}

type ConversionKind = (typeof conversionKinds)[number]

const conversionKinds = ['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'] as const
const metaVersions = ['v1', 'v1beta1'] as const

const plainJson: Chosen = { mediaType: 'application/json', conversion: undefined, isPretty: false }

function negotiate(request: Request, available: readonly string[]): Chosen {
  const { accept } = request.headers
  if (isAnything(accept)) return plainJson
  const clauses = parseAccept(accept)
  if (!clauses.some(isKnown)) {
    throw new StatusError(
      'NotAcceptable',
      `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`,
      { details: {} },
    )
  }
  const chosen = choose(clauses)
  if (chosen === undefined) throw notAccepted(objectTypes)
  return chosen
}

/** A fast path: most clients send no Accept header, or one of these. */
function isAnything(accept: string | undefined): accept is undefined | PlainAccept {
  return accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json'
}

type PlainAccept = '' | '*/*' | 'application/json'

/** Returns whether the clause covers one of the types that the error messages name. */
function isKnown(clause: AcceptClause): boolean {
  return objectTypes.some((type) => matches(clause, type))
}

function matches(clause: AcceptClause, mediaType: string): boolean {
  const { type, subtype } = clause
  if (type === '*') return subtype === '*'
  return subtype === '*' ? mediaType.startsWith(`${type}/`) : mediaType === `${type}/${subtype}`
}

/** Returns the best supported format, in the client's order of preference. */
function choose(clauses: readonly AcceptClause[]): Chosen | undefined {
  for (const clause of clauses) {
    for (const mediaType of offered) {
      const chosen = matches(clause, mediaType) ? accepted(clause, mediaType) : undefined
      if (chosen !== undefined) return chosen
    }
  }
  return undefined
}

/** Returns undefined when this type does not support a parameter of the clause. */
function accepted(
  clause: AcceptClause,
  mediaType: Representation['mediaType'],
): Chosen | undefined {
  const parameters = new Map(clause.parameters.map(({ name, value }) => [name, value]))
  const stream = parameters.get('stream')
  if (stream !== undefined && (stream !== 'watch' || mediaType === 'application/yaml')) {
    return undefined
  }
  const serverVersion = parameters.get('sv') ?? ''
  if (serverVersion !== '' && serverVersion !== 'v1') return undefined
  const isPretty = parameters.get('pretty') === '1'
  if (!parameters.has('as') && !parameters.has('g') && !parameters.has('v')) {
    return { mediaType, conversion: undefined, isPretty }
  }
  const kind = conversionKinds.find((name) => name === parameters.get('as'))
  const version = metaVersions.find((name) => name === parameters.get('v'))
  if (kind === undefined || version === undefined || parameters.get('g') !== 'meta.k8s.io') {
    return undefined
  }
  if (kind === 'Table' && mediaType === PROTOBUF) return undefined
  return { mediaType, conversion: { kind, version }, isPretty }
}

function representation(request: Request, chosen: Chosen): Representation {
  const { mediaType, conversion } = chosen
  const isPretty = chosen.isPretty || wantsPretty(request)
  if (conversion === undefined) return { mediaType, as: 'object', isPretty, ...noConversion }
  const metaVersion = conversion.version
  if (conversion.kind !== 'Table') {
    return { mediaType, as: 'partial', isPretty, ...noConversion, metaVersion }
  }
  const includeObject = includeObjectOf(request)
  return { mediaType, as: 'table', isPretty, metaVersion, includeObject }
}

const noConversion = { metaVersion: 'v1', includeObject: 'Metadata' } as const

function includeObjectOf(request: Request): IncludeObject {
  const sent = request.query.get('includeObject') ?? ''
  switch (sent) {
    case '':
      return 'Metadata'
    case 'None':
    case 'Metadata':
    case 'Object':
      return sent
    default:
      throw badRequest(
        `Unable to convert to Table as requested: includeObject: Invalid value: ${goQuote(sent)}: must be 'Metadata', 'Object', 'None', or empty`,
      )
  }
}

function notAList(): StatusError {
  return notAcceptable(
    'you requested PartialObjectMetadataList, but the requested object is not a list',
  )
}

function notAccepted(types: readonly string[]): StatusError {
  return notAcceptable(`only the following media types are accepted: ${types.join(', ')}`)
}

function notAcceptable(message: string): StatusError {
  return new StatusError('NotAcceptable', message)
}
