import type { StatusDetails, StatusError } from '../api/status.ts'
import { type DocumentForm, documentBody } from '../codec/document.ts'
import type { Request, Response } from '../http/exchange.ts'
import { errorForm } from './negotiate.ts'
import { warningHeader } from './warnings.ts'

/**
 * A Status as the body of an answer, with `Retry-After` when it says when to come back. It may repeat
 * what a stranger sent, so no browser is to guess what it is; a 401 repeats nothing.
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

/** That something was done, when there is nothing to show. */
export function successResponse(
  form: DocumentForm,
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
export function documentResponse(status: number, form: DocumentForm, document: object): Response {
  return {
    status,
    headers: { 'content-type': form.mediaType },
    body: documentBody(form, document),
  }
}

/** Plain text that a browser must not take for anything else. */
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

/** For a path that is served to nobody, as a Kubernetes API server words it. */
export function pageNotFound(): Response {
  return textResponse(404, '404 page not found\n')
}
