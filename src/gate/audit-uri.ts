import type { Request } from '../http/exchange.ts'
import { isSecretName } from '../lib/log-fields.ts'

const REDACTED = '[redacted]'
/** Names that are secrets in a query, if not in a log. */
const SECRET_PARAMETERS = new Set(['auth', 'code', 'sig', 'signature', 'assertion'])
/** Three parts of base64url, of which the first begins as JSON does: a signed token, whatever its name. */
const SIGNED_TOKEN = /eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g
const BEARER = /\b(bearer)\s+\S+/gi
const URI_LENGTH_MAX = 8 * 1024

/**
 * What was asked for, fit to be kept: credentials do not belong into a query, but some clients put
 * them there. The value of a parameter that sounds like a secret is left out, and so is whatever
 * looks like a token, wherever it is.
 */
export function auditUri({ path, query }: Pick<Request, 'path' | 'query'>): string {
  const shown = encodeURI(withoutTokens(path.toWellFormed()))
  if (query.size === 0) return cut(shown)
  const pairs: string[] = []
  for (const [name, value] of query) {
    pairs.push(
      `${encodeURIComponent(withoutTokens(name))}=${encodeURIComponent(shownValue(name, value))}`,
    )
  }
  return cut(`${shown}?${pairs.join('&')}`)
}

function shownValue(name: string, value: string): string {
  if (isSecretName(name) || SECRET_PARAMETERS.has(name.toLowerCase())) return REDACTED
  // Some have always thought that a semicolon separates parameters.
  return value.includes(';') ? value.split(';').map(shownPart).join(';') : withoutTokens(value)
}

function shownPart(part: string): string {
  const equals = part.indexOf('=')
  const name = part.slice(0, equals)
  if (equals === -1) return withoutTokens(part)
  if (isSecretName(name)) return `${name}=${REDACTED}`
  return withoutTokens(part)
}

/** A text from a client without what looks like a token. */
export function withoutTokens(text: string): string {
  // Most have neither, and one look costs less than two replacements.
  if (!/eyJ|bearer/i.test(text)) return text
  return text.replace(SIGNED_TOKEN, REDACTED).replace(BEARER, `$1 ${REDACTED}`)
}

/** The mark is shown as it is, for those who look for it. */
function cut(uri: string): string {
  const shown = uri.replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return shown.length > URI_LENGTH_MAX ? `${shown.slice(0, URI_LENGTH_MAX)}...TRUNCATED` : shown
}
