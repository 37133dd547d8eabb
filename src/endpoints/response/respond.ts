import { type StatusDetails, type StatusError, unknownPath } from '../../api/status.ts'
import { type DocumentFormat, documentBody } from '../../codec/document.ts'
import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import type { ShownEvent } from '../../codec/event/event-bytes.ts'
import type { Handler, Request, Response } from '../../http/exchange.ts'
import { errorForm } from '../request/negotiate.ts'
import { warningHeader } from './warnings.ts'

export function eventResponse(
  status: number,
  encoder: ResponseEncoder,
  event: ShownEvent,
  warnings: readonly string[] = [],
): Response {
  const warning = warningHeader(warnings)
  return {
    status,
    headers:
      warning === undefined
        ? { 'content-type': encoder.contentType }
        : { 'content-type': encoder.contentType, warning },
    body: encoder.one(event),
  }
}

/**
 * A response with a Status, and with `Retry-After` if the Status has a time to retry. It may quote
 * parts of the request, so browsers must not guess its type (`nosniff`). A 401 quotes nothing.
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

/** A Status that reports success, for requests without another result. */
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

/** A response with a document that is not an event. */
export function documentResponse(status: number, form: DocumentFormat, document: object): Response {
  return {
    status,
    headers: { 'content-type': form.mediaType },
    body: documentBody(form, document),
  }
}

/** A response with plain text, of which browsers must not guess another type. */
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

/** The response for an unknown path, in the words of a Kubernetes API server. */
export function pageNotFound(): Response {
  return textResponse(404, '404 page not found\n')
}

/** Handles paths below a served group or resource at which nothing is served. */
export const unknownPathHandler: Handler = async () => {
  throw unknownPath()
}
