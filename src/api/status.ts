/** Why a request failed, in the words Kubernetes clients branch on. */
export type StatusReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'RequestEntityTooLarge'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  | 'Timeout'

const CODES: Readonly<Record<StatusReason, number>> = {
  BadRequest: 400,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
}

export interface StatusDetails {
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

export interface StatusCause {
  readonly reason?: string
  readonly message?: string
  readonly field?: string
}

/** The body of every failure. Members are declared in the order in which they are printed. */
export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Readonly<Record<string, never>>
  readonly status: 'Failure'
  readonly message: string
  readonly reason: StatusReason
  readonly details?: StatusDetails
  readonly code: number
}

/** Thrown anywhere above storage to end a request with exactly this answer. */
export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly reason: StatusReason
  readonly details: StatusDetails | undefined

  /** `cause` is for the log; the client sees `message` and `details` only. */
  constructor(
    reason: StatusReason,
    message: string,
    extra: { readonly details?: StatusDetails; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: extra.cause })
    this.reason = reason
    this.details = extra.details
  }

  get code(): number {
    return CODES[this.reason]
  }

  status(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    }
  }
}

export function unauthorized(): StatusError {
  return new StatusError('Unauthorized', 'Unauthorized')
}

/** `limit` names the bound that was passed, so that the caller knows what would fit. */
export function entityTooLarge(limit: string, cause: unknown): StatusError {
  return new StatusError('RequestEntityTooLarge', `Request entity too large: ${limit}`, { cause })
}

/** Time ran out. For a write this says nothing about whether it happened. */
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

export function unavailable(message: string, retryAfterSeconds: number): StatusError {
  return new StatusError('ServiceUnavailable', message, { details: { retryAfterSeconds } })
}

/** A bug: what happened goes to the log, and the client learns where to point us. */
export function internalError(cause: unknown): StatusError {
  const message =
    "the server met a condition it did not expect; its log tells more under this answer's Audit-Id"
  return new StatusError('InternalError', `Internal error occurred: ${message}`, {
    details: { causes: [{ message }] },
    cause,
  })
}
