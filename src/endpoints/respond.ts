import type { Status, StatusError } from '../api/status.ts'
import type { Request, Response } from '../http/exchange.ts'

/** A Status as the body of an answer, with `Retry-After` when it says when to come back. */
export function statusResponse(request: Request, error: StatusError): Response {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const retryAfter = error.details?.retryAfterSeconds
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter)
  return {
    status: error.code,
    headers,
    body: jsonText(request, error.status()),
    closeConnection: error.reason === 'Unauthorized',
  }
}

/** Indented for people (`?pretty=true`, curl, browsers), compact and ended by a newline for the rest. */
export function jsonText(request: Request, value: Status | object): string {
  return wantsPretty(request) ? JSON.stringify(value, undefined, 2) : `${JSON.stringify(value)}\n`
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

function wantsPretty(request: Request): boolean {
  const asked = request.query.get('pretty') ?? ''
  if (asked !== '') return /^(1|t|true)$/i.test(asked)
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers['user-agent'] ?? '')
}
