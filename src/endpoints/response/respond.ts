import type { StatusDetails, StatusError } from '../../api/status.ts'
import { type DocumentFormat, documentBody } from '../../codec/document.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { errorForm } from '../request/negotiate.ts'
import { warningHeader } from './warnings.ts'

/**
 * A response with a Status, with `Retry-After` when the Status says when to retry. It may repeat
 * parts of the request, so browsers must not guess its type (`nosniff`); a 401 repeats nothing.
 */
export function statusResponse(request: Request, error: StatusError): Response {
  const response = documentResponse(error.code, errorForm(request), error.status())
  const warning = warningHeader(error.warnings)
  const retryAfter = error.details?.retryAfterSeconds
  const isUnauthorized = error.reason === 'Unauthorized'
  return {
    ...response,
    headers: {
      ...response.headers,
      ...(isUnauthorized ? {} : { 'x-content-type-options': 'nosniff' }),
      ...(warning === undefined ? {} : { warning }),
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    },
    closeConnection: isUnauthorized,
  }
}

/** A Status that reports success, for a request without another result. */
export function successResponse(
  form: DocumentFormat,
  status: {
    readonly metadata?: { readonly continue?: string; readonly remainingItemCount?: number }
    readonly details: StatusDetails
  },
): Response {
  return documentResponse(200, form, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: status.metadata ?? {},
    status: 'Success',
    details: status.details,
  })
}

/** A document that is not an event. */
export function documentResponse(status: number, form: DocumentFormat, document: object): Response {
  return {
    status,
    headers: { 'content-type': form.mediaType },
    body: documentBody(form, document),
  }
}

/** Plain text; browsers must not guess another type. */
export function textResponse(status: number, body: string): Response {
  return {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    },
    body,
  }
}

/** For an unknown path, in the words of a Kubernetes API server. */
export function pageNotFound(): Response {
  return textResponse(404, '404 page not found\n')
}
