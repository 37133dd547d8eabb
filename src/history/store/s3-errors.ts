/**
 * What a failed call to S3 means, and what an operator should check. The errors of the SDK are not passed on as causes:
 * they have all that S3 sent in their fields, which can be a session token.
 */
import { beginningOf } from '../../lib/text/shortened.ts'
import { codeOf } from './file-errors.ts'
import { StoreError, type StoreErrorKind } from './object-store.ts'

const MESSAGE_LENGTH_MAX = 500

export class S3Error extends StoreError {
  /** Whether the same call can succeed a moment later. */
  readonly isTransient: boolean

  constructor(kind: StoreErrorKind, message: string, isTransient: boolean) {
    super(kind, message)
    this.isTransient = isTransient
  }
}

/** What is known of an error of the SDK: from S3, from STS, from a source of credentials or from a socket. */
interface Said {
  /** Undefined if there was no response. */
  readonly status: number | undefined
  /** `AccessDenied`, `ECONNREFUSED`, `TimeoutError`; may be empty. */
  readonly code: string
  readonly message: string
  readonly requestId: string | undefined
}

interface Meaning {
  readonly kind: StoreErrorKind
  readonly check?: string
  readonly isTransient?: boolean
}

const CHECK_KEYS = 'check the access key and its secret'
const CHECK_EXPIRED = 'the credentials have expired, and their source has no newer ones'
const CHECK_TOKEN = 'check AWS_WEB_IDENTITY_TOKEN_FILE, and who may assume the role AWS_ROLE_ARN'
const CHECK_RIGHTS =
  'the credentials need s3:GetObject, s3:PutObject and s3:DeleteObject for the objects, and s3:ListBucket for the bucket'
const CHECK_REGION = 'set AWS_REGION to the region of the bucket'
const CHECK_CREDENTIALS =
  'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the service account or the machine a role'
const CHECK_CLOCK = 'the clocks of this machine and of S3 differ'
const CHECK_SPACE = 'the store has no space, or the bucket has reached its quota'
const CHECK_ADDRESS =
  'check AWS_ENDPOINT_URL_S3 and AWS_REGION, and that S3 can be reached from here'
const CHECK_CERTIFICATE =
  'set NODE_EXTRA_CA_CERTS to the certificates of a private authority; check that AWS_ENDPOINT_URL_S3 is https if S3 is'

/** By code, since a status alone does not tell: Ceph reports a full quota with 403. */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['NoSuchKey', { kind: 'missing' }],
  ['NoSuchBucket', { kind: 'unavailable', check: 'create the bucket, or correct its name' }],
  ['QuotaExceeded', { kind: 'full', check: CHECK_SPACE }],
  ['InsufficientCapacity', { kind: 'full', check: CHECK_SPACE }],
  ['XMinioStorageFull', { kind: 'full', check: CHECK_SPACE }],
  ['XMinioAdminBucketQuotaExceeded', { kind: 'full', check: CHECK_SPACE }],
  ['InvalidAccessKeyId', { kind: 'denied', check: CHECK_KEYS }],
  ['InvalidClientTokenId', { kind: 'denied', check: CHECK_KEYS }],
  ['SignatureDoesNotMatch', { kind: 'denied', check: CHECK_KEYS }],
  ['ExpiredToken', { kind: 'denied', check: CHECK_EXPIRED }],
  ['ExpiredTokenException', { kind: 'denied', check: CHECK_EXPIRED }],
  ['TokenRefreshRequired', { kind: 'denied', check: CHECK_EXPIRED }],
  ['InvalidToken', { kind: 'denied', check: CHECK_KEYS }],
  ['InvalidIdentityToken', { kind: 'denied', check: CHECK_TOKEN }],
  ['IDPRejectedClaim', { kind: 'denied', check: CHECK_TOKEN }],
  ['CredentialsProviderError', { kind: 'denied', check: CHECK_CREDENTIALS }],
  ['RequestTimeTooSkewed', { kind: 'unavailable', check: CHECK_CLOCK, isTransient: true }],
  ['PermanentRedirect', { kind: 'unavailable', check: CHECK_REGION }],
  ['AuthorizationHeaderMalformed', { kind: 'unavailable', check: CHECK_REGION }],
  ['IllegalLocationConstraintException', { kind: 'unavailable', check: CHECK_REGION }],
  ['ENOTFOUND', { kind: 'unavailable', check: CHECK_ADDRESS, isTransient: true }],
  ['ECONNREFUSED', { kind: 'unavailable', check: CHECK_ADDRESS, isTransient: true }],
  ['EHOSTUNREACH', { kind: 'unavailable', check: CHECK_ADDRESS, isTransient: true }],
  ['EPROTO', { kind: 'unavailable', check: CHECK_CERTIFICATE }],
  // A file with credentials or a token.
  ['ENOENT', { kind: 'denied', check: CHECK_CREDENTIALS }],
  ['EACCES', { kind: 'denied', check: CHECK_CREDENTIALS }],
])

/** `what` says what was tried, and with which object: `put s3://bucket/name`. */
export function s3Error(what: string, error: unknown): S3Error {
  if (error instanceof S3Error) return error
  const said = saidBy(error)
  const { kind, check, isTransient = false } = meaningOf(said)
  const advice = check === undefined ? '' : ` (${check})`
  return new S3Error(kind, `${what}: ${shown(said)}${advice}`, isTransient)
}

function meaningOf(said: Said): Meaning {
  const known = MEANINGS.get(said.code)
  if (known !== undefined) return known
  if (/CERT|SELF_SIGNED|UNABLE_TO_/.test(said.code)) {
    return { kind: 'unavailable', check: CHECK_CERTIFICATE }
  }
  if (said.message.includes('Region is missing')) {
    return { kind: 'unavailable', check: CHECK_REGION }
  }
  return meaningOfStatus(said.status)
}

function meaningOfStatus(status: number | undefined): Meaning {
  if (status === undefined) return { kind: 'unavailable', isTransient: true }
  if (status === 401 || status === 403) return { kind: 'denied', check: CHECK_RIGHTS }
  if (status === 507) return { kind: 'full', check: CHECK_SPACE }
  // 501: not implemented.
  const isTransient = (status >= 500 && status !== 501) || status === 429 || status === 408
  return { kind: 'unavailable', isTransient }
}

function saidBy(error: unknown): Said {
  if (!(error instanceof Error)) {
    return { status: undefined, code: '', message: String(error), requestId: undefined }
  }
  const { httpStatusCode, requestId } = metadataOf(error)
  const hasOwnName = !['Error', 'Unknown', 'TypeError'].includes(error.name)
  return {
    status: httpStatusCode,
    code: codeOf(error) || (hasOwnName ? error.name : ''),
    message: error.message === 'UnknownError' ? '' : error.message,
    requestId,
  }
}

interface Metadata {
  readonly httpStatusCode?: number
  readonly requestId?: string
}

function metadataOf(error: Error): Metadata {
  return '$metadata' in error ? (error.$metadata as Metadata) : {}
}

function shown({ status, code, message, requestId }: Said): string {
  const words = beginningOf(forOperators(message), MESSAGE_LENGTH_MAX)
  if (status === undefined) return words === '' ? code : words
  const request = requestId === undefined ? '' : `, request ${beginningOf(requestId, 100)}`
  const parts = [code, words].filter((part) => part !== '')
  return `S3 responded ${[status, ...parts].join(': ')}${request}`
}

/** Without what the SDK says to programmers: its package, an option in brackets, further lines. */
function forOperators(message: string): string {
  // Node's word for a response that ends too early, or that is silent for too long.
  if (message === 'aborted') return 'the connection broke off in the middle of the response'
  if (message.startsWith('@aws-sdk XML parse error')) return 'the response is not XML'
  const [line = ''] = message.split('\n')
  return line.replace(/^@(?:smithy|aws-sdk)\/[\w-]+ - /, '').replace(/ \(configured by .*$/, '')
}
