import { goQuote } from '../lib/go/go-quote.ts'
import { cutText, type FieldError, fieldErrorsText } from './validation/field-error.ts'

/** The machine-readable reason for a failure, which Kubernetes clients branch on. */
export type StatusReason = keyof typeof CODES

const CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  RequestTimeout: 408,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const

/** Members are declared in the order in which they are encoded. */
export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

export interface StatusCause {
  readonly reason?: string
  readonly message?: string
  readonly field?: string
}

/** The body of every failure. Members are declared in the order in which they are encoded. */
export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Failure'
  readonly message: string
  readonly reason: StatusReason
  readonly details?: StatusDetails
  readonly code: number
}

interface StatusExtra {
  readonly details?: StatusDetails | undefined
  /** The token to continue an interrupted list, with the reason `Expired`. */
  readonly continueToken?: string | undefined
  readonly warnings?: readonly string[]
  readonly user?: string | undefined
  /** Only logged. */
  readonly cause?: unknown
}

/** Thrown anywhere above storage to end a request with this response. */
export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly reason: StatusReason
  readonly details: StatusDetails | undefined
  /** Each is sent to the client in a Warning header. */
  readonly warnings: readonly string[]
  /** The name of the user who was rejected, for the log. */
  readonly user: string | undefined
  readonly #continueToken: string | undefined

  /** The client sees only `message` and `details`; `cause` is logged. */
  constructor(reason: StatusReason, message: string, extra: StatusExtra = {}) {
    super(message, { cause: extra.cause })
    this.reason = reason
    this.details = extra.details
    this.warnings = extra.warnings ?? []
    this.user = extra.user
    this.#continueToken = extra.continueToken
  }

  get code(): number {
    return CODES[this.reason]
  }

  /** Returns the same error with other warnings. */
  withWarnings(warnings: readonly string[]): StatusError {
    return new StatusError(this.reason, this.message, {
      details: this.details,
      continueToken: this.#continueToken,
      warnings,
      user: this.user,
      cause: this.cause,
    })
  }

  status(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.#continueToken === undefined ? {} : { continue: this.#continueToken },
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    }
  }
}

export function isStatus(error: unknown, reason: StatusReason): boolean {
  return error instanceof StatusError && error.reason === reason
}

export function badRequest(message: string, cause?: unknown): StatusError {
  return new StatusError('BadRequest', message, { cause })
}

/** An object or options with invalid fields. */
export function invalid(
  subject: { readonly kind: string; readonly group?: string; readonly name: string },
  errors: readonly FieldError[],
): StatusError {
  const { kind, group } = subject
  const name = cutText(subject.name)
  const qualified = group === undefined ? kind : `${kind}.${group}`
  return new StatusError(
    'Invalid',
    `${qualified} ${goQuote(name)} is invalid: ${fieldErrorsText(errors)}`,
    {
      details: {
        ...(name === '' ? {} : { name }),
        ...(group === undefined ? {} : { group }),
        kind,
        causes: errors.map(({ cause, body, field }) => ({ reason: cause, message: body, field })),
      },
    },
  )
}

/** A path that is not served, below a prefix that is. */
export function unknownPath(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', {
    details: {},
  })
}

export function methodNotAllowed(): StatusError {
  return new StatusError(
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    { details: {} },
  )
}

/** Refuses other verbs on objects that are computed on each list and exist only there. */
export function onlyListed(resource: string): StatusError {
  return new StatusError(
    'MethodNotAllowed',
    `${resource} are computed for each list: they can only be listed, not watched, read by name or written`,
    { details: {} },
  )
}

/** Refuses a write to a mirrored cluster, whose events only its mirror writes. */
export function isMirrored(cluster: string): StatusError {
  return new StatusError(
    'MethodNotAllowed',
    `cluster ${JSON.stringify(cluster)} is mirrored: write its events to the cluster itself`,
    { details: {} },
  )
}

export function unauthorized(): StatusError {
  return new StatusError('Unauthorized', 'Unauthorized')
}

/** The attributes of a request that was not authorized. */
export interface Refused {
  readonly isResource: boolean
  readonly cluster?: string
  /** Whether the client has named the cluster, so that the message names it too. */
  readonly isPrefixed?: boolean
  readonly verb: string
  readonly path: string
  readonly group?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

export function forbidden(
  user: string,
  refused: Refused,
  reason?: string,
  account: string = user,
): StatusError {
  const why = clusterOf(refused) + (reason === undefined || reason === '' ? '' : `: ${reason}`)
  const { verb, path, group = '', resource = '', namespace = '', name = '' } = refused
  if (!refused.isResource) {
    const message = `forbidden: User "${user}" cannot ${verb} path "${path}"${why}`
    return new StatusError('Forbidden', escapeHtml(message), { details: {}, user: account })
  }
  const qualified = group === '' ? resource : `${resource}.${group}`
  const named = name === '' ? '' : ` "${name}"`
  const place = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const part = refused.subresource ? `${resource}/${refused.subresource}` : resource
  const message = `${qualified}${named} is forbidden: User "${user}" cannot ${verb} resource "${part}" in API group "${group}" ${place}${why}`
  return new StatusError('Forbidden', escapeHtml(message), {
    details: { ...(name === '' ? {} : { name }), group, kind: resource },
    user: account,
  })
}

function clusterOf({ cluster = '', isPrefixed = false }: Refused): string {
  if (!isPrefixed) return ''
  return cluster === '*' ? ' in all clusters' : ` in the cluster "${cluster}"`
}

/**
 * Escapes HTML, since the message quotes input of any client, even an unauthenticated one, and may
 * be shown in a browser.
 */
function escapeHtml(message: string): string {
  return message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** `limit` describes the limit that was exceeded, so that the client knows what would fit. */
export function entityTooLarge(limit: string, cause: unknown): StatusError {
  return new StatusError('RequestEntityTooLarge', `Request entity too large: ${limit}`, { cause })
}

/** The request body did not arrive in time. Nothing was done. */
export function bodyTooSlow(message: string, cause: unknown): StatusError {
  return new StatusError('RequestTimeout', message, { details: { retryAfterSeconds: 1 }, cause })
}

/** The request timed out. A write may or may not have been applied. */
export function timedOut(extra: {
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}): StatusError {
  const { retryAfterSeconds, cause } = extra
  return new StatusError(
    'Timeout',
    'Timeout: request did not complete within the allotted timeout',
    { details: retryAfterSeconds === undefined ? {} : { retryAfterSeconds }, cause },
  )
}

export function unavailable(
  message: string,
  retryAfterSeconds: number,
  cause?: unknown,
): StatusError {
  return new StatusError('ServiceUnavailable', message, { details: { retryAfterSeconds }, cause })
}

/** Nothing was done, and a retry may succeed. */
export function tooManyRequests(
  message: string,
  retryAfterSeconds: number,
  cause?: unknown,
): StatusError {
  return new StatusError('TooManyRequests', message, { details: { retryAfterSeconds }, cause })
}

/** Reports a bug. The cause is logged; only `reason` is sent to the client. */
export function internalError(cause: unknown, reason?: string): StatusError {
  const message =
    reason ?? "unexpected error in the server; see the server log for this response's Audit-Id"
  return new StatusError('InternalError', `Internal error occurred: ${message}`, {
    details: { causes: [{ message }] },
    cause,
  })
}
